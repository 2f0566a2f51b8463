-- Who may do what with the outbox.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables
table dead_event                    -        -        rwd      rawd     r
table event                         -        -        ra       ra       r
table event_block                   -        -        rawd     rawd     r
table event_delivery                -        -        rad      rawd     r
table event_flight                  -        -        rd       rawd     r
table event_replay                  -        -        raw      rawd     r
table event_route                   -        -        rad      rawd     r
table event_sent                    -        -        r        ra       r
table event_sink                    -        -        rawd     rawd     r
table event_source                  -        -        r        r        r
table event_stat                    -        -        r        rawd     r
table event_topic                   -        -        raw      raw      r
table inbox                         -        -        r        ra       r
table outbox_debezium               -        -        r        r        r
table relay                         -        -        rw(turn_place)d  rawd  r
table relay_shard                   -        -        rad      rawd     r

-- sequences
sequence event_flight_seq           -        -        -        U        -
sequence event_number_seq           -        -        U        U        -
sequence event_timeline_seq         -        -        U        U        -
sequence relay_id_seq               -        -        -        U        -

-- functions
function add_event_stats            -        -        -        X        -
function balance_shards             -        -        -        X        -
function begin_replay               -        -        X        X        -
function bury_events                -        -        -        X        -
function bury_outside               -        -        -        X        -
function bury_relays                -        -        -        X        -
function cancel_replay              -        -        X        X        -
function claim_events               -        -        -        X        -
function count_claims_until_turn    -        -        X        X        X
function count_dead_events          -        -        X        X        X
function declare_sink               -        -        X        X        -
function declare_topic              -        -        X        X        -
function describe_event_days        -        -        X        X        X
function describe_sink_relays       -        -        X        X        X
function describe_sinks             -        -        X        X        X
function discard_dead_events        -        -        X        X        -
function drop_deliveries            -        -        X        X        -
function drop_event_day             -        -        -        X        -
function emit_dated_event           -        -        -        X        -
function emit_event                 -        -        X        X        -
function emit_events                -        -        -        X        -
function ensure_event_days          -        -        -        X        -
function event_id                   -        -        X        X        X
function event_number               -        -        X        X        X
function exchange_events            -        -        -        X        -
function fail_events                -        -        -        X        -
function fair_share                 -        -        X        X        X
function feed_replay                -        -        -        X        -
function find_bad_escape            -        -        X        X        -
function finish_events              -        -        -        X        -
function first_of_key               -        -        -        X        -
function free_idle_shards           -        -        -        X        -
function free_shards                -        -        -        X        -
function group_dead_events          -        -        X        X        X
function hold_relays                -        -        X        X        -
function list_blocks                -        -        X        X        X
function list_dead_events           -        -        X        X        X
function list_event_states          -        -        X        X        X
function list_lag                   -        -        X        X        X
function list_relay_states          -        -        X        X        X
function list_replays               -        -        X        X        X
function list_sink_heads            -        -        X        X        X
function list_sinks                 -        -        X        X        X
function list_topics                -        -        X        X        X
function lock_flight                -        -        -        X        -
function move_mark                  -        -        -        X        -
function outbox_claim               -        -        -        X        -
function outbox_mark                -        -        -        X        -
function outbox_mark_delivered      -        -        -        X        -
function outbox_mark_failed         -        -        -        X        -
function pause_sink                 -        -        X        X        -
function pick_blocked               -        -        -        X        -
function pick_ready                 -        -        -        X        -
function prune_outbox               -        -        -        X        -
function raise_event_numbers        -        -        X        X        -
function redrive_dead_events        -        -        X        X        -
function refuse_event               -        -        X        X        -
function register_relay             -        -        -        X        -
function release_keys               -        -        X        X        -
function release_relay              -        -        -        X        -
function remove_sink                -        -        X        X        -
function renew_relay                -        -        -        X        -
function replay_room                -        -        -        X        -
function replay_tenant              -        -        -        X        -
function rule_key_parked            -        -        -        X        -
function rule_outbox_dead           -        -        -        X        -
function rule_outbox_late           -        -        -        X        -
function rule_sink_away             -        -        -        X        -
function rules_outbox               -        -        X        X        X
function sample_outbox              -        -        X        X        X
function see_event                  -        -        -        X        -
function set_flight                 -        -        -        X        -
function show_event                 -        -        X        X        X
function sink_is_idle               -        -        X        X        X
function state_outbox               -        -        X        X        X
function take_oldest_shards         -        -        -        X        -
function topic_matches              -        -        X        X        -
function walk_dead_groups           -        -        X        X        X
function walk_places                -        -        X        X        X
function why_delivery               -        -        X        X        X
function why_event                  -        -        X        X        X

-- functions of other packages
function redact                     -        -        X        X        -
$matrix$);
