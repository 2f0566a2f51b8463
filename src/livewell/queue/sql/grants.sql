-- Who may do what with the queue.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables
table batch                         -        -        rw       rawd     r
table bulk_act                      -        -        raw      rwd      r
table dead_job                      -        -        rawd     rawd     r
table job                           -        -        rawd     rawd     r
table job_failure                   -        -        rad      rad      r
table job_history                   -        -        ra       ra       r
table queue                         -        -        rw       raw      r
table stat                          -        -        r        rawd     r
table tick                          -        -        r        rawd     r
table worker                        -        -        r        rawd     r

-- sequences. timeline, failover: whether there was a failover; whoever hands out numbers looks.
-- promoted: whether workers must report first, after a restart; whoever asks a limiter looks.
sequence failover_seq               -        -        r        r        -
sequence fence_seq                  -        -        r        rU       -
sequence job_id_seq                 -        -        -        rU       -
sequence promoted_seq               -        -        r        r        r
sequence timeline_seq               -        -        r        r        -
sequence worker_id_seq              -        -        -        rU       -

-- functions: batch
function create_batch               -        -        -        X        -
function end_batches                -        -        X        X        -
function list_batches               -        -        X        -        X
function seal_batch                 -        -        -        X        -
function show_batch                 -        -        X        X        X
function show_follow_up             -        -        X        -        X

-- functions: bulk. Operators ask, workers do.
function act_on_page                -        -        -        X        -
function begin_bulk_act             -        -        X        -        -
function cancel_jobs                -        -        -        X        -
function check_filter               -        -        X        -        X
function confirm_bulk_act           -        -        X        -        -
function count_matching             -        -        X        -        X
function end_bulk_act               -        -        X        X        -
function list_bulk_acts             -        -        X        -        X
function match_dead                 -        -        X        X        X
function match_jobs                 -        -        X        X        X
function next_bulk_act              -        -        -        X        -
function postpone_bulk_act          -        -        -        X        -
function prune_bulk_acts            -        -        -        X        -
function step_bulk_act              -        -        -        X        -

-- functions: claim
function claim_jobs                 -        -        -        X        -
function claim_limited              -        -        -        X        -
function exchange_jobs              -        -        -        X        -
function group_has_room             -        -        -        X        -
function limited_answer             -        -        -        X        -
function limited_candidates         -        -        -        X        -
function lock_behind_marks          -        -        -        X        -
function lock_limited               -        -        -        X        -
function lock_suspect               -        -        -        X        -
function measure_room               -        -        -        X        -
function pick_limited               -        -        -        X        -
function raise_fences               -        -        -        X        -
function read_candidates            -        -        -        X        -

-- functions: enqueue
function answer_jobs                -        -        X        X        -
function check_jobs                 -        -        X        X        -
function declare_queue              -        -        -        X        -
function drop_repeated              -        -        X        X        -
function enqueue_jobs               -        -        X        X        -
function enqueue_keyed              -        -        -        X        -
function enqueue_one                -        -        -        X        -
function enqueue_plain              -        -        -        X        -
function given_jobs                 -        -        X        X        -
function insert_jobs                -        -        X        X        -
function merge_jobs                 -        -        X        X        -
function refuse_job                 -        -        X        X        -
function reserve_job_ids            -        -        -        X        -

-- functions: finish
function charge_jobs                -        -        X        X        -
function finish_jobs                -        -        -        X        -
function release_held               -        -        X        X        -
function note_failures              -        -        X        X        -
function settle_jobs                -        -        X        X        -

-- functions: lease
function reconcile_jobs             -        -        -        X        -
function register_worker            -        -        -        X        -
function release_worker             -        -        -        X        -
function renew_worker               -        -        -        X        -
function report_lacks               -        -        -        X        -
function report_progress            -        -        -        X        -
function works_queue                -        -        X        X        X

-- functions: operate
function cancel_job                 -        -        X        X        -
function cancel_seen_job            -        -        X        -        -
function count_jobs                 -        -        X        -        X
function count_queues               -        -        X        -        X
function count_running              -        -        X        X        X
function describe_queues            -        -        X        X        X
function discard_dead               -        -        X        X        -
function edit_dead                  -        -        X        -        -
function find_jobs                  -        -        X        -        X
function find_queues                -        -        X        -        X
function group_dead                 -        -        X        -        X
function hasten_job                 -        -        X        X        -
function list_dead                  -        -        X        -        X
function list_held_jobs             -        -        X        -        X
function list_jobs                  -        -        X        -        X
function list_limiters              -        -        X        X        X
function list_lost_jobs             -        -        X        -        X
function list_queue_states          -        -        X        X        X
function list_queues                -        -        X        -        X
function list_worker_states         -        -        X        X        X
function list_workers               -        -        X        -        X
function look_dead                  -        -        X        -        X
function mend_dead                  -        -        X        -        -
function narrow_jobs                -        -        X        -        X
function pause_queue                -        -        X        -        -
function pause_queues               -        -        X        -        -
function read_jobs                  -        -        X        -        X
function read_queue_sample          -        -        X        X        X
function redrive_dead               -        -        X        X        -
function sample_queue               -        -        X        X        X
function show_failures              -        -        X        X        X
function show_job                   -        -        X        X        X
function show_job_links             -        -        X        -        X
function show_progress              -        -        X        X        X
function show_traceback             -        -        X        X        X
function show_worker                -        -        X        -        X
function state_limits               -        -        X        X        X
function state_queue                -        -        X        X        X

-- functions: permits
function book_call                  -        -        -        X        -
function permit_room                -        -        -        X        -
function report_wall                -        -        -        X        -
function restart_wait               -        -        X        X        X
function server_started             -        -        X        X        X
function take_call                  -        -        -        X        -
function take_permits               -        -        -        X        -

-- functions: upkeep
function add_stats                  -        -        -        X        -
function drop_history_day           -        -        -        X        -
function ensure_history_days        -        -        -        X        -
function maintain                   -        -        -        X        -
function promote_held               -        -        -        X        -
function promote_jobs               -        -        -        X        -
function prune_queue                -        -        -        X        -
function recover_jobs               -        -        -        X        -

-- functions: why
function why_apart                  -        -        X        X        X
function why_ended                  -        -        X        X        X
function why_full                   -        -        X        X        X
function why_job                    -        -        X        X        X
function why_limited                -        -        X        X        X
function why_unworked               -        -        X        X        X
$matrix$);
