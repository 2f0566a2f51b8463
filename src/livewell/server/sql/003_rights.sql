-- 0.7.0: a key that is bound to types operates nothing, and how many sessions a public key may have.
-- Never edited after release; changes are a new numbered file.

-- M2: what operators see and do concerns every type. Keys that were made with both lose the scope; those that had no other are revoked. Before the check: it holds for updates of old rows, too,
-- and a row that breaks it could not even be revoked. As whoever migrates: row security shows livewell_owner no rows, see grants.sql.
DO $bound$
DECLARE
    v_owner text := current_user;
BEGIN
    SET LOCAL ROLE NONE;
    UPDATE livewell.api_key SET revoked_at = coalesce(revoked_at, livewell.now()) WHERE types IS NOT NULL AND scopes <@ ARRAY['operate', 'admin'];
    UPDATE livewell.api_key SET scopes = array_remove(array_remove(scopes, 'operate'), 'admin')
    WHERE types IS NOT NULL AND scopes && ARRAY['operate', 'admin'] AND NOT scopes <@ ARRAY['operate', 'admin'];
    EXECUTE format('SET LOCAL ROLE %I', v_owner);
END
$bound$;
ALTER TABLE livewell.api_key ADD CONSTRAINT api_key_bound_check CHECK (types IS NULL OR revoked_at IS NOT NULL OR NOT scopes && ARRAY['operate', 'admin']) NOT VALID;
-- Keys are few.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE livewell.api_key VALIDATE CONSTRAINT api_key_bound_check;

-- R3: how many sessions the strangers of a public key may have at a time; NULL: what the setting public_sessions_max says.
ALTER TABLE livewell.api_key ADD COLUMN sessions_max integer;
ALTER TABLE livewell.api_key ADD CONSTRAINT api_key_sessions_check CHECK (sessions_max IS NULL OR public AND sessions_max BETWEEN 1 AND 1000000) NOT VALID;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE livewell.api_key VALIDATE CONSTRAINT api_key_sessions_check;
