-- Who may do what with singletons, schedules and runs.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables. Workers run schedules; operators look, ask, pause and remove, and so do workers, for a
-- program that has no other login. The hub serves the watchdog, which is told names and seconds and
-- comes without a login.
table pulse                         -        r        rd       rawd     r
table run                           -        r(schedule,state,due_at)  r        rawd     r
table schedule                      -        r        rw(asked_at,paused_at)d  rawd     r
table singleton                     -        -        r        raw      r
table tick                          -        r        -        -        -

-- functions: admin
function awaited_slot               -        X        X        X        X
function find_runs                  -        -        X        X        X
function late_at                    -        X        X        X        X
function late_schedules             -        X        X        X        X
function list_runs                  -        -        X        X        X
function list_schedules             -        -        X        X        X
function pause_schedule             -        -        X        X        -
function recent_runs                -        -        X        X        X
function remove_schedule            -        -        X        X        -
function show_run                   -        -        X        -        X
function state_schedules            -        -        X        X        X

-- functions: run
function ask_run                    -        -        X        X        -
function begin_asked_run            -        -        -        X        -
function begin_run                  -        -        -        X        -
function count_open_run             -        -        -        X        -
function crash_runs                 -        -        -        X        -
function fail_open_run              -        -        -        X        -
function finish_run                 -        -        -        X        -
function open_run                   -        -        -        X        -
function prune_runs                 -        -        -        X        -
function renew_run                  -        -        -        X        -
function skip_slots                 -        -        -        X        -
function take_run                   -        -        -        X        -

-- functions: scheduler
function declare_open_schedule      -        -        -        X        -
function declare_schedule           -        -        -        X        -
function move_schedule              -        -        -        X        -
function plan_schedule              -        -        -        X        -
function record_pulse               -        -        -        X        -
function remove_open_schedule       -        -        -        X        -
function tick_schedules             -        -        -        X        -

-- functions: singleton
function acquire_singleton          -        -        -        X        -
function hold_singleton             -        -        -        X        -
function release_singleton          -        -        -        X        -
function state_leases               -        -        X        X        X

-- functions of other packages
function redact                     -        -        -        X        -
$matrix$);
