-- Who may do what with exports: those who serve users go through functions that enter one user
-- first; workers serve everybody; operators and readers see numbers and states, and nothing that
-- comes from a document: no file names, no ids of documents, no options (E12, E15).
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables
table export                        -        -        r(id,job_id,fence,seq,reserved_bytes,stored_bytes,bytes,created_at,started_at,finished_at,expires_at,removed_at,over_at,pages,downloads,attempt,progress,user_id,kind,state,reason,template)  rawd  r(id,job_id,fence,seq,reserved_bytes,stored_bytes,bytes,created_at,started_at,finished_at,expires_at,removed_at,over_at,pages,downloads,attempt,progress,user_id,kind,state,reason,template)
table export_batch                  -        -        -        rawd     -
table export_file                   -        -        r(export_id,bytes,written_at,given_up_at,claimed_at,user_id,state)  rawd  r(export_id,bytes,written_at,given_up_at,claimed_at,state)
table export_kind                   -        -        r        raw      r
table export_member                 -        -        r        rawd     -
table export_renderer               -        -        r        rawd     r
table export_usage                  -        -        r        rawd     r

-- functions: request
function check_export_items         -        -        -        X        -
function declare_export_kind        -        -        -        X        -
function enter_export_user          -        -        -        X        -
function insert_export_batch        -        -        -        X        -
function insert_exports             -        -        -        X        -
function lock_export_usage          -        -        -        X        -
function match_exports              -        -        -        X        -
function next_export_steps          -        -        -        X        -
function request_exports            X        -        -        X        -

-- functions: work
function begin_export               -        -        -        X        -
function fail_export                -        -        -        X        -
function finish_export              -        -        -        X        -
function owns_export_job            -        -        -        X        -
function plan_export_file           -        -        -        X        -
function step_export                -        -        -        X        -

-- functions: end
function cancel_export              X        -        X        X        -
function delete_export              X        -        -        X        -
function end_export                 -        -        -        X        -
function end_export_batches         -        -        -        X        -
function free_expired_exports       -        -        -        X        -
function settle_lost_exports        -        -        -        X        -

-- functions: read
function count_downloads            X        -        -        X        -
function export_document            -        -        -        X        -
function export_verdict             -        -        X        X        X
function find_exports               -        -        X        X        X
function follow_exports             X        -        -        X        -
function list_export_kinds          X        -        -        X        -
function list_exports               X        -        -        X        -
function read_export_file           X        -        -        X        -
function read_export_files          X        -        -        X        -
function show_export                X        -        -        X        -
function show_export_batch          X        -        -        X        -
function show_export_usage          X        -        -        X        -

-- functions: files, upkeep
function claim_export_files         -        -        -        X        -
function expire_exports             -        -        -        X        -
function find_unknown_files         -        -        -        X        -
function forget_export_file         X        -        -        X        -
function prune_exports              -        -        -        X        -
function report_renderer            -        -        -        X        -
function settle_exports             -        -        -        X        -

-- functions: rules, state
function list_export_failures       -        -        X        X        X
function list_export_users          -        -        X        X        X
function list_renderers             -        -        X        X        X
function rule_exports_failing       -        -        -        X        -
function rule_exports_memory        -        -        -        X        -
function rule_exports_waiting       -        -        -        X        -
function rules_exports              -        -        X        X        X
function state_exports              -        -        X        X        X
$matrix$);

-- ── row security ──
-- As in refresh/sql/grants.sql: functions that run as the owner see and write the rows of the user
-- they have entered, whatever their own words say. A migration of these rows has to run as a login,
-- not as livewell_owner.
DO $rows$
DECLARE
    v_table     text;
    v_policy    text;
    v_role      text;
    v_using     text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY[
        'export', 'export_file', 'export_usage', 'export_batch', 'export_member'
    ] LOOP
        IF NOT (
            SELECT c.relrowsecurity AND c.relforcerowsecurity FROM pg_catalog.pg_class c
            WHERE c.oid = pg_catalog.to_regclass('livewell.' || v_table)) THEN
            EXECUTE format('ALTER TABLE livewell.%I ENABLE ROW LEVEL SECURITY', v_table);
            EXECUTE format('ALTER TABLE livewell.%I FORCE ROW LEVEL SECURITY', v_table);
        END IF;
        FOR v_policy, v_role, v_using IN VALUES
            ('own', 'livewell_owner',
             $$user_id = nullif(current_setting('livewell.user_id', true), '')$$),
            ('owner_login', 'livewell_owner', $$current_user <> 'livewell_owner'$$),
            ('worker', 'livewell_worker', 'true'),
            ('operate', 'livewell_operate', 'true'),
            ('readonly', 'livewell_readonly', 'true')
        LOOP
            IF NOT EXISTS (
                SELECT FROM pg_catalog.pg_policy p
                WHERE p.polrelid = pg_catalog.to_regclass('livewell.' || v_table)
                    AND p.polname = v_policy) THEN
                EXECUTE format(
                    'CREATE POLICY %I ON livewell.%I TO %I USING (%s)', v_policy, v_table, v_role,
                    v_using);
            END IF;
        END LOOP;
    END LOOP;
END
$rows$;
