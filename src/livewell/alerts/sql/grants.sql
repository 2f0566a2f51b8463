-- Who may do what with alerts.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables. Operators silence; a test of a channel is made by test_channel() for them.
table alert                         -        -        r        rawd     r
table alert_channel                 -        -        rw(disabled_at,quiet_until)  rawd     r
table alert_firing                  -        -        r        rawd     r
table alert_lasting                 -        -        r        rawd     r
table alert_rule                    -        -        r        rawd     r
table alert_silence                 -        -        raw      rawd     r
table notification                  -        -        r        rawd     r
table notification_attempt          -        -        r        rawd     r

-- functions
function begin_attempt              -        -        -        X        -
function declare_channels           -        -        -        X        -
function enable_channel             -        -        X        X        -
function expire_attempts            -        -        -        X        -
function lasting                    -        -        -        X        -
function list_alerts                -        -        X        X        X
function list_attempts              -        -        X        X        X
function list_channels              -        -        X        X        X
function list_firings               -        -        X        X        X
function list_silences              -        -        X        X        X
function list_urgent_alerts         -        -        X        -        X
function observe_alerts             -        -        -        X        -
function prune_alerts               -        -        -        X        -
function settle_attempt             -        -        -        X        -
function silence_alerts             -        -        X        X        -
function silenced_until             -        -        X        X        X
function state_alerts               -        -        X        X        X
function test_channel               -        -        X        X        -
function unsilence_alerts           -        -        X        X        -

-- functions of other packages
function redact                     -        -        X        X        -
$matrix$);
