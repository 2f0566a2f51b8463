-- Who may do what with contacts: no role has a right on a table, all go through functions that enter
-- a tenant first.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- functions
function decide_contact_conflict    X        -        X        X        -
function erase_contact              X        -        X        X        -
function find_contact               X        -        X        X        -
function list_contact_conflicts     X        -        X        X        -
function list_contacts              X        -        X        X        -
function list_identity_policies     X        -        X        X        -
function prune_contacts             -        -        -        X        -
function resolve_contact            X        -        X        X        -
function set_identity_policy        -        -        X        X        -
function show_contact               X        -        X        X        -
function state_contacts             -        -        X        X        X
function unmerge_contact            X        -        X        X        -
$matrix$);

-- ── row security ──
-- As in refresh/sql/grants.sql, by tenant: functions that run as the owner see and write the rows of
-- the tenant they have entered, whatever their own words say. Functions that count or prune enter
-- none (every_tenant). A migration of these rows has to run as a login, not as livewell_owner.
DO $rows$
DECLARE
    v_table     text;
    v_policy    text;
    v_using     text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY[
        'contact', 'contact_identity', 'contact_alias', 'identity_policy', 'contact_merge',
        'contact_conflict', 'contact_tombstone', 'contact_request'
    ] LOOP
        IF NOT (
            SELECT c.relrowsecurity AND c.relforcerowsecurity FROM pg_catalog.pg_class c
            WHERE c.oid = pg_catalog.to_regclass('livewell.' || v_table)) THEN
            EXECUTE format('ALTER TABLE livewell.%I ENABLE ROW LEVEL SECURITY', v_table);
            EXECUTE format('ALTER TABLE livewell.%I FORCE ROW LEVEL SECURITY', v_table);
        END IF;
        FOR v_policy, v_using IN VALUES
            ('own', $$tenant = nullif(current_setting('livewell.tenant', true), '')$$),
            ('owner_login', $$current_user <> 'livewell_owner'$$),
            ('every_tenant',
             $$current_setting('livewell.every_tenant', true) = 'on'$$
             || $$ AND coalesce(current_setting('livewell.tenant', true), '') = ''$$)
        LOOP
            CONTINUE WHEN v_policy = 'every_tenant'
                AND v_table NOT IN ('contact_merge', 'contact_conflict', 'contact_request');
            IF NOT EXISTS (
                SELECT FROM pg_catalog.pg_policy p
                WHERE p.polrelid = pg_catalog.to_regclass('livewell.' || v_table)
                    AND p.polname = v_policy) THEN
                EXECUTE format(
                    'CREATE POLICY %I ON livewell.%I TO livewell_owner USING (%s)', v_policy, v_table,
                    v_using);
            END IF;
        END LOOP;
    END LOOP;
END
$rows$;
