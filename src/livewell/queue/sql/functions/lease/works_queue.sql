-- Whether a worker with these queues works this one: by its name, or by a pattern such as refresh.*
-- (a beginning and a star).
--
-- Called by: restart_wait, rule_credential_missing, why_refresh; list_queues, describe_queues,
--            why_unworked.
CREATE OR REPLACE FUNCTION livewell.works_queue(p_queues text[], p_queue text)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT coalesce(
        bool_or(p_queue = w OR right(w, 1) = '*' AND starts_with(p_queue, left(w, -1))), false
    )
    FROM unnest(p_queues) AS w
$$;
COMMENT ON FUNCTION livewell.works_queue IS
    'Whether a list of queue names and patterns covers a queue.';
REVOKE ALL ON FUNCTION livewell.works_queue FROM PUBLIC;
