-- Who may look after the system.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables
table state_minute                  -        -        r        rad      r

-- tables of other packages. Rules read what workers may read; what mends locks and changes what its
-- header says, as an operator, and by hand as a worker's login.
table data_type                     -        -        r        r        r
table singleton                     -        -        rw(expires_at,fence)  -        -
table upstream                      -        -        -        w(paused_at)  -
table warning                       -        -        r        r        r
table worker                        -        -        r        -        -

-- sequences
sequence fence_seq                  -        -        r        -        -

-- functions: mend
function close_breaker              -        -        X        X        -
function probe_breaker              -        -        X        X        -
function resume_upstream            -        -        X        X        -
function take_singleton             -        -        X        X        -

-- functions: minutes
function list_minutes               -        -        X        X        X
function prune_minutes              -        -        -        X        -
function record_minute              -        -        -        X        -

-- functions: rules. They read what workers may read, and move alerts.
function alert_rules                -        -        X        X        X
function budgets_above              -        -        -        X        -
function due_watched                -        -        -        X        -
function evaluate_rule              -        -        -        X        -
function limiter_subject            -        -        -        X        -
function rules_operations           -        -        X        X        X
function rule_background_waiting    -        -        -        X        -
function rule_breaker_open          -        -        -        X        -
function rule_budget_nine_tenths    -        -        -        X        -
function rule_budget_reached        -        -        -        X        -
function rule_budget_three_quarters -        -        -        X        -
function rule_calls_near_limit      -        -        -        X        -
function rule_credential_missing    -        -        -        X        -
function rule_key_overdue           -        -        -        X        -
function rule_queue_deep            -        -        -        X        -
function rule_queue_stalled         -        -        -        X        -
function rule_schedule_late         -        -        -        X        -
function rule_singleton_held        -        -        -        X        -
function rule_size_underestimated   -        -        -        X        -
function rule_type_silent           -        -        -        X        -
function rule_upstream_silent       -        -        -        X        -
function rule_warning_rate          -        -        -        X        -
function rule_watched_not_fresh     -        -        -        X        -

-- functions: state
function list_warnings              -        -        X        X        X
function system_state               -        -        X        X        X

-- functions of other packages
function list_limiters              -        -        -        X        -
$matrix$);
