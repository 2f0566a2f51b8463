-- Who may do what with the outbox.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables
table dead_event                    -        -        r        rawd     r
table event                         -        -        r        ra       r
table event_block                   -        -        r        rawd     r
table event_delivery                -        -        r        rawd     r
table event_flight                  -        -        r        rawd     r
table event_route                   -        -        r        rawd     r
table event_sent                    -        -        r        ra       r
table event_sink                    -        -        rw(paused_at)  raw  r
table event_source                  -        -        r        r        r
table event_stat                    -        -        r        rawd     r
table event_topic                   -        -        r        raw      r
table inbox                         -        -        r        ra       r
table outbox_debezium               -        -        r        r        r
table relay                         -        -        r        rawd     r
table relay_shard                   -        -        r        raw      r

-- sequences
sequence event_number_seq           -        -        -        U        -
sequence event_timeline_seq         -        -        -        U        -
sequence relay_id_seq               -        -        -        U        -

-- functions
function add_event_stats            -        -        -        X        -
function balance_shards             -        -        -        X        -
function bury_events                -        -        -        X        -
function bury_relays                -        -        -        X        -
function claim_events               -        -        -        X        -
function declare_sink               -        -        -        X        -
function declare_topic              -        -        -        X        -
function drop_event_day             -        -        -        X        -
function emit_event                 -        -        -        X        -
function emit_events                -        -        -        X        -
function ensure_event_days          -        -        -        X        -
function event_id                   -        -        X        X        X
function exchange_events            -        -        -        X        -
function fail_events                -        -        -        X        -
function find_bad_escape            -        -        -        X        -
function finish_events              -        -        -        X        -
function first_of_key               -        -        -        X        -
function free_idle_shards           -        -        -        X        -
function free_shards                -        -        -        X        -
function move_mark                  -        -        -        X        -
function outbox_claim               -        -        -        X        -
function outbox_mark                -        -        -        X        -
function outbox_mark_delivered      -        -        -        X        -
function outbox_mark_failed         -        -        -        X        -
function pick_blocked               -        -        -        X        -
function pick_ready                 -        -        -        X        -
function raise_event_numbers        -        -        -        X        -
function refuse_event               -        -        -        X        -
function register_relay             -        -        -        X        -
function release_relay              -        -        -        X        -
function renew_relay                -        -        -        X        -
function see_event                  -        -        -        X        -
function take_oldest_shards         -        -        -        X        -
function topic_matches              -        -        -        X        -

-- functions of other packages
function redact                     -        -        -        X        -
$matrix$);
