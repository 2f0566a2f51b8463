-- Who may do what with résumés: no role has a right on a table, all go through functions that act for
-- one user (E12). Operators count documents and read none.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- functions
function change_resume              X        -        -        -        -
function create_resume              X        -        -        -        -
function delete_resume              X        -        -        -        -
function list_resume_versions       X        -        -        -        -
function list_resumes               X        -        -        -        -
function show_resume                X        -        -        X        -
function state_resumes              -        -        X        X        X
$matrix$);

-- ── row security ──
-- As in refresh/sql/grants.sql: functions that run as the owner see and write the rows of the user
-- they act for, whatever their own words say. state_resumes counts everybody's; it names nobody
-- first, and then the policy `counted` shows it the counters, and no document.
DO $rows$
DECLARE
    v_table     text;
    v_policy    text;
    v_using     text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['resume_user', 'resume_document', 'resume_version'] LOOP
        IF NOT (
            SELECT c.relrowsecurity AND c.relforcerowsecurity FROM pg_catalog.pg_class c
            WHERE c.oid = pg_catalog.to_regclass('livewell.' || v_table)) THEN
            EXECUTE format('ALTER TABLE livewell.%I ENABLE ROW LEVEL SECURITY', v_table);
            EXECUTE format('ALTER TABLE livewell.%I FORCE ROW LEVEL SECURITY', v_table);
        END IF;
        FOR v_policy, v_using IN VALUES
            ('own', $$user_id = nullif(current_setting('livewell.user_id', true), '')$$),
            ('owner_login', $$current_user <> 'livewell_owner'$$)
        LOOP
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
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_policy p
        WHERE p.polrelid = pg_catalog.to_regclass('livewell.resume_user') AND p.polname = 'counted')
    THEN
        EXECUTE format(
            'CREATE POLICY counted ON livewell.resume_user FOR SELECT TO livewell_owner USING (%s)',
            $$current_setting('livewell.counts', true) = 'on'$$
            || $$ AND coalesce(current_setting('livewell.user_id', true), '') = ''$$);
    END IF;
END
$rows$;
