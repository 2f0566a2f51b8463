-- Who may do what with keys.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
-- Making and revoking keys is the owner's: whoever may make a key may do everything a key may. For
-- an administrator servers call mint_key and withdraw_keys, which want the hash of the secret of a
-- key with the scope admin, and give no scope that it lacks. Operators read keys, and no hash.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- table
table api_key                       -        -        r(id,name,kind,scopes,types,public,created_at,expires_at,revoked_at,last_used_at,sessions_max)  -  -

-- functions
function end_login                  X        -        -        -        -
function find_api_key               X        -        -        -        -
function find_key                   X        -        -        -        -
function find_login_owner           X        -        -        -        -
function list_keys                  -        -        X        -        -
function list_login_origins         -        -        X        -        -
function list_logins                -        -        X        -        -
function mint_key                   -        -        X        -        -
function redeem_link                X        -        -        -        -
function touch_key                  X        -        -        -        -
function withdraw_keys              -        -        X        -        -
$matrix$);

-- Row security, as in refresh/sql/grants.sql: what runs as the owner sees the one key it
-- was called for.
DO $rows$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_policy p
        WHERE p.polrelid = pg_catalog.to_regclass('livewell.api_key')
    ) THEN
        ALTER TABLE livewell.api_key ENABLE ROW LEVEL SECURITY;
        ALTER TABLE livewell.api_key FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON livewell.api_key TO livewell_owner
            USING (user_id = nullif(current_setting('livewell.user_id', true), ''));
        CREATE POLICY owner_login ON livewell.api_key TO livewell_owner
            USING (current_user <> 'livewell_owner');
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_policy p
        WHERE p.polrelid = pg_catalog.to_regclass('livewell.api_key') AND p.polname = 'look'
    ) THEN
        -- All rows, within its columns: operators see who may come in.
        CREATE POLICY look ON livewell.api_key FOR SELECT TO livewell_operate USING (true);
    END IF;
END
$rows$;
