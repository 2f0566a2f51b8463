-- Do one page of an act on many: of this one, or of the one whose turn it is.
--
-- Called by: workers, with what next_bulk_act answers (operations/bulk_acts.py).
-- Index:     bulk_act_pkey; then as match_jobs and match_dead.
-- Answer:    the act, its action, how many were done now, whether it has ended, and why nothing was
--            done if that failed. No row: it does not run any more, or another worker is at it.
-- The page, its counts and the cursor are one transaction under the lock of the act's row: two
-- workers never do a page twice, and a worker that dies in the middle has done nothing.
-- Why SKIP LOCKED on jobs: a claim or a finish that is under way must not be waited for while many
-- rows are locked. What was locked is kept and tried once more at the end, then counted as skipped.
-- A key that an open transaction has taken (redrive) cannot be skipped: lock_timeout ends that wait.
-- A page that fails five times in a row ends its act; the others go on meanwhile. Deadlocks,
-- timeouts and what the server lacks are nobody's fault: they are the caller's error, who calls
-- postpone_bulk_act.
CREATE OR REPLACE FUNCTION livewell.step_bulk_act(p_limit integer, p_id bigint DEFAULT NULL)
RETURNS TABLE (act_id bigint, action text, did bigint, is_ended boolean, error text)
LANGUAGE plpgsql
SET search_path = ''
SET lock_timeout = '1s'
AS $$
#variable_conflict use_column
DECLARE
    c_look      CONSTANT integer := 5000;
    c_busy_most CONSTANT integer := 10000;
    c_tries     CONSTANT integer := 5;
    v_id        bigint := coalesce(p_id, livewell.next_bulk_act());
    v_act       livewell.bulk_act;
    v_page      livewell.match_page;
    v_locked    bigint[];
    v_busy      bigint[];
    v_second    boolean;            -- what was locked before is tried once more
    v_done      bigint := 0;
    v_ended     boolean;
    v_now       timestamptz;
BEGIN
    SELECT * INTO v_act FROM livewell.bulk_act b
    WHERE b.id = v_id AND b.state = 'running' FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_now := livewell.now();
    <<page>>
    BEGIN
        IF v_act.action IN ('cancel', 'hasten') THEN
            v_page := livewell.match_jobs(
                v_act.filter, v_act.cursor_id, v_act.up_to_id, v_act.before_at, c_look, p_limit
            );
        ELSE
            v_page := livewell.match_dead(
                v_act.filter, v_act.cursor_id, v_act.up_to_id, v_act.before_at, c_look, p_limit
            );
        END IF;
        v_second := v_page.is_last AND cardinality(v_page.ids) = 0;
        IF v_second THEN
            v_page.ids := v_act.busy_ids[:p_limit];
            v_act.busy_ids := v_act.busy_ids[p_limit + 1:];
        END IF;

        SELECT p.locked, p.done INTO v_locked, v_done
        FROM livewell.act_on_page(v_act, v_page.ids) p;
        v_busy := ARRAY(
            SELECT p.id FROM unnest(v_page.ids) AS p (id) WHERE p.id <> ALL (v_locked) ORDER BY p.id
        );
        v_act.done := v_act.done + v_done;
        v_act.skipped := v_act.skipped + cardinality(v_locked) - v_done;
        IF v_second OR cardinality(v_act.busy_ids) + cardinality(v_busy) > c_busy_most THEN
            v_act.skipped := v_act.skipped + cardinality(v_busy);
        ELSE
            v_act.busy_ids := v_act.busy_ids || v_busy;
        END IF;
        v_ended := v_page.is_last AND cardinality(v_act.busy_ids) = 0;
        UPDATE livewell.bulk_act b
        SET cursor_id = v_page.cursor_id, done = v_act.done, skipped = v_act.skipped,
            busy_ids = v_act.busy_ids, stepped_at = v_now, rest_until = NULL, failures = 0,
            broken_off = 0, error = NULL,
            state = CASE WHEN v_ended THEN 'done' ELSE 'running' END,
            ended_at = CASE WHEN v_ended THEN v_now END
        WHERE b.id = v_act.id;
        IF v_ended THEN
            PERFORM livewell.audit_act(
                v_act.asked_by, NULL, 'acts.end', 'act ' || v_act.id,
                jsonb_build_object('action', v_act.action, 'filter', v_act.filter),
                format('done: %s done, %s skipped', v_act.done, v_act.skipped),
                NULL, NULL, v_act.done
            );
        END IF;
    EXCEPTION WHEN OTHERS THEN
        IF left(SQLSTATE, 2) IN ('40', '53', '55', '57') THEN
            RAISE;
        END IF;
        UPDATE livewell.bulk_act b
        SET failures = b.failures + 1, stepped_at = v_now,
            error = left(livewell.redact(SQLERRM), 1000)
        WHERE b.id = v_act.id;
        v_ended := v_act.failures + 1 >= c_tries;
        IF v_ended THEN
            PERFORM livewell.end_bulk_act(v_act.id, SQLERRM, v_act.asked_by);
        END IF;
        RETURN QUERY SELECT v_act.id, v_act.action, 0::bigint, v_ended, SQLERRM;
        RETURN;
    END page;
    RETURN QUERY SELECT v_act.id, v_act.action, v_done, v_ended, NULL::text;
END
$$;
COMMENT ON FUNCTION livewell.step_bulk_act IS
    'Does one page of an act on all that match; answers nothing when there is nothing to do.';
REVOKE ALL ON FUNCTION livewell.step_bulk_act FROM PUBLIC;
