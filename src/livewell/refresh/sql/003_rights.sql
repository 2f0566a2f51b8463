-- 0.7.0: ids of sessions are stored as hashes, anonymous sessions belong to the public key that made them, and strangers have shares of a key's sessions.
-- Never edited after release; changes are a new numbered file.

-- L12: which public key an anonymous session was opened with; NULL: a user's, or opened before 0.7.0, which any public key may go on with until it ends.
ALTER TABLE livewell.viewer_session ADD COLUMN public_key text COLLATE "C";

-- R3: how many sessions are open, by public key and by the addresses of each. Names are those of viewer_session.origin: the hash of the key, and of the address behind it.
CREATE TABLE livewell.session_share (
    sessions        integer     NOT NULL,
    name            text COLLATE "C" PRIMARY KEY,
    CONSTRAINT session_share_sessions_check CHECK (sessions >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.session_share IS 'Open sessions of strangers, by public key and by key and address: its locks make "count, then insert" safe (R3).';

-- L4: sessions that are open go on under the hash of their id (functions/session_hash.sql). Writers wait until this is committed. A call that waits here began before and looks for the plain id: it is
-- answered that there is no such session, and its client opens another, as after five minutes of silence. As whoever migrates: row security shows livewell_owner no rows, see grants.sql.
DO $hash$
DECLARE
    v_owner text := current_user;
BEGIN
    SET LOCAL ROLE NONE;
    LOCK TABLE livewell.viewer_session, livewell.viewer, livewell.subscription IN SHARE ROW EXCLUSIVE MODE;
    UPDATE livewell.subscription SET
        session_id = encode(substr(sha256(uuid_send(session_id)), 1, 16), 'hex')::uuid,
        user_id = CASE WHEN user_id = 'session:' || session_id THEN 'session:' || encode(substr(sha256(uuid_send(session_id)), 1, 16), 'hex')::uuid ELSE user_id END;
    UPDATE livewell.viewer w SET user_id = 'session:' || encode(substr(sha256(uuid_send(substr(w.user_id, 9)::uuid)), 1, 16), 'hex')::uuid
    WHERE w.user_id ~ '^session:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
    UPDATE livewell.viewer_session SET
        id = encode(substr(sha256(uuid_send(id)), 1, 16), 'hex')::uuid,
        user_id = CASE WHEN user_id = 'session:' || id THEN 'session:' || encode(substr(sha256(uuid_send(id)), 1, 16), 'hex')::uuid ELSE user_id END;
    INSERT INTO livewell.session_share (name, sessions)
    SELECT n, count(*) FROM livewell.viewer_session s CROSS JOIN LATERAL unnest(ARRAY[split_part(s.origin, ' ', 1), s.origin]) AS n WHERE s.origin IS NOT NULL GROUP BY n;
    EXECUTE format('SET LOCAL ROLE %I', v_owner);
END
$hash$;

-- What processes before 0.6.0 asked; read_readings has followed. A new database does not have them.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.read_changes(text[], text[], bigint[], text[], bigint[])') IS NOT NULL THEN
        DROP FUNCTION livewell.read_changes(text[], text[], bigint[], text[], bigint[]);
    END IF;
    IF to_regprocedure('livewell.read_states(text[], text[], bigint[], text[], bigint[])') IS NOT NULL THEN
        DROP FUNCTION livewell.read_states(text[], text[], bigint[], text[], bigint[]);
    END IF;
    -- refresh_jobs has followed. No process called these two: only functions did, and those are made anew.
    IF to_regprocedure('livewell.refresh_job(livewell.data_type, text, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.refresh_job(livewell.data_type, text, integer);
    END IF;
    IF to_regprocedure('livewell.refresh_payloads(text[], text[])') IS NOT NULL THEN
        DROP FUNCTION livewell.refresh_payloads(text[], text[]);
    END IF;
END
$drop$;
