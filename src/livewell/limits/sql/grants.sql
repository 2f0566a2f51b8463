-- Who may do what with limiters.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables. Operators write too: their cancel settles a job, and with it what the job had reserved.
table limiter                       -        -        rw       raw      r
table limiter_calls                 -        -        rawd     rawd     r
table limiter_credential            -        -        rw       raw      r
table limiter_estimate              -        -        rawd     rawd     r
table limiter_failing               -        -        rawd     rawd     r
table limiter_flight                -        -        rawd     rawd     r
table limiter_grant                 -        -        rawd     rawd     r
table limiter_usage                 -        -        rawd     rawd     r
table usage_settled                 -        -        rawd     rawd     r

-- functions
function book_calls                 -        -        X        X        -
function book_probe                 -        -        X        X        -
function book_usage                 -        -        X        X        -
function budget_since               -        -        X        X        X
function declare_limiter            -        -        -        X        -
function end_calls                  -        -        X        X        -
function grant_calls                -        -        -        X        -
function limiter_budget             -        -        X        X        X
function limiter_rate               -        -        X        X        X
function limiter_room               -        -        X        X        X
function limiter_trouble            -        -        X        X        X
function list_worst_windows         -        -        X        -        X
function mark_keys                  -        -        X        X        -
function observe_limiter            -        -        -        X        -
function open_breaker               -        -        X        X        -
function prune_limits               -        -        -        X        -
function weigh_failures             -        -        X        X        -
$matrix$);
