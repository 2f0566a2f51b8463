-- Count a failure we tolerate.
--
-- Called by: many functions; any function or process that goes on after something went wrong.
-- Index:     warning_hour_idx (hour, place, what)
-- Why SECURITY DEFINER: livewell_api has no table rights, and nobody shall write a text that was
-- not redacted and bounded.
-- Why pg_catalog.text: even with search_path = '' Postgres looks for types in pg_temp first, and a
-- caller's domain "text" would run its checks as the owner.
-- Why SKIP LOCKED: a warning must never make anyone wait. The row we count in stays locked until
-- our caller commits; who meets it meanwhile takes or adds another row.
-- Bounds:    texts 100, 200 and 500 characters; about 1,000 rows an hour, what comes after is
--            counted as '(more)'.
CREATE OR REPLACE FUNCTION livewell.warn(p_where text, p_what text, p_sample text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    c_rows_max CONSTANT integer := 1000;
    -- rows that '(more)' may have beyond that, for callers that hold one each
    c_spare CONSTANT integer := 100;
    v_place pg_catalog.text := coalesce(nullif(left(livewell.redact(p_where), 100), ''), '(none)');
    v_what pg_catalog.text := coalesce(nullif(left(livewell.redact(p_what), 200), ''), '(none)');
    v_sample pg_catalog.text := left(livewell.redact(p_sample), 500);
    v_now pg_catalog.timestamptz := livewell.now();
    v_hour pg_catalog.timestamptz := date_trunc('hour', v_now, 'UTC');
    v_room integer;
BEGIN
    IF current_setting('transaction_read_only')::boolean THEN
        RETURN;     -- nowhere to write it; failing the reader would be worse
    END IF;
    FOREACH v_room IN ARRAY ARRAY[c_rows_max, c_rows_max + c_spare] LOOP
        -- A stricter isolation level would fail (40001) on a row that someone counted in since its
        -- snapshot: there we only add.
        IF current_setting('transaction_isolation') = 'read committed' THEN
            UPDATE livewell.warning w
            SET n = w.n + 1, last_at = greatest(w.last_at, v_now),
                sample = coalesce(v_sample, w.sample)
            WHERE w.id = (
                SELECT free.id FROM livewell.warning free
                WHERE free.hour = v_hour AND free.place = v_place AND free.what = v_what
                LIMIT 1 FOR UPDATE SKIP LOCKED
            );
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
        IF (
            SELECT count(*)
            FROM (SELECT FROM livewell.warning w WHERE w.hour = v_hour LIMIT v_room) AS taken
        ) < v_room
        THEN
            INSERT INTO livewell.warning (hour, first_at, last_at, place, what, sample)
            VALUES (v_hour, v_now, v_now, v_place, v_what, v_sample);
            RETURN;
        END IF;
        v_sample := left(v_place || ': ' || v_what, 500);
        v_place := '(more)';
        v_what := '(more)';
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.warn IS
    'Counts a tolerated failure: bounded, redacted, and never waits for another transaction.';
REVOKE ALL ON FUNCTION livewell.warn FROM PUBLIC;
