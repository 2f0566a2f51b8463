-- Who may do what with keys. Re-applied when this file changes; skipped where roles cannot be created.
-- Making, listing and revoking keys is the owner's alone: whoever may make a key may do everything a key may.
GRANT EXECUTE ON FUNCTION livewell.find_key, livewell.find_api_key, livewell.touch_key, livewell.redeem_link, livewell.end_login TO livewell_api;

-- Row security, as in refresh/sql/grants.sql: what runs as the owner sees the one key it was called for.
DO $rows$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = pg_catalog.to_regclass('livewell.api_key')) THEN
        ALTER TABLE livewell.api_key ENABLE ROW LEVEL SECURITY;
        ALTER TABLE livewell.api_key FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON livewell.api_key TO livewell_owner USING (user_id = nullif(current_setting('livewell.user_id', true), ''));
        CREATE POLICY owner_login ON livewell.api_key TO livewell_owner USING (current_user <> 'livewell_owner');
    END IF;
END
$rows$;
