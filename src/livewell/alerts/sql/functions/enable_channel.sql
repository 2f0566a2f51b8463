-- Let a channel send again that was disabled because its receiver was gone, or that was told to be
-- quiet.
--
-- Called by: CLI `alerts enable`, POST /v1/alerts/channels/{name}/enable, the dashboard.
CREATE OR REPLACE FUNCTION livewell.enable_channel(p_channel text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.alert_channel c
    SET disabled_at = NULL, quiet_until = NULL
    WHERE c.name = p_channel;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.enable_channel IS
    'Enables a channel; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.enable_channel FROM PUBLIC;
