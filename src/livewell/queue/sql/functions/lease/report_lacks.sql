-- Say which credentials a worker cannot use: "limiter credential" for each. It claims nothing with
-- them.
--
-- Called by: worker, when it has looked which queues it claims from and something has changed.
CREATE OR REPLACE FUNCTION livewell.report_lacks(p_worker bigint, p_lacks text[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.worker w SET lacks = p_lacks WHERE w.id = p_worker AND w.lacks <> p_lacks;
END
$$;
COMMENT ON FUNCTION livewell.report_lacks IS 'Keeps which credentials a worker cannot use.';
REVOKE ALL ON FUNCTION livewell.report_lacks FROM PUBLIC;
