-- Who may do what with the queue. Re-applied when this file changes; skipped where roles cannot be created.
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.job, livewell.worker, livewell.dead_job, livewell.stat, livewell.tick TO livewell_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.batch TO livewell_worker;
GRANT SELECT, INSERT ON livewell.job_history TO livewell_worker;
GRANT SELECT, INSERT, UPDATE ON livewell.queue TO livewell_worker;
GRANT USAGE, SELECT ON SEQUENCE livewell.job_id_seq, livewell.fence_seq, livewell.worker_id_seq TO livewell_worker;
GRANT EXECUTE ON FUNCTION
    livewell.enqueue_jobs, livewell.reserve_job_ids, livewell.claim_jobs, livewell.finish_jobs, livewell.settle_jobs, livewell.exchange_jobs,
    livewell.register_worker, livewell.report_lacks, livewell.renew_worker, livewell.reconcile_jobs, livewell.release_worker, livewell.recover_jobs, livewell.promote_jobs,
    livewell.maintain, livewell.report_progress, livewell.cancel_job, livewell.declare_queue, livewell.add_stats, livewell.ensure_history_days,
    livewell.drop_history_day, livewell.prune_queue, livewell.show_job, livewell.show_progress, livewell.enqueue_one, livewell.enqueue_plain, livewell.enqueue_keyed, livewell.refuse_job, livewell.merge_jobs, livewell.claim_limited, livewell.limited_answer,
    livewell.limited_candidates, livewell.group_has_room, livewell.take_permits, livewell.charge_jobs, livewell.release_held, livewell.promote_held, livewell.create_batch,
    livewell.seal_batch, livewell.end_batches, livewell.show_batch, livewell.why_job, livewell.works_queue, livewell.take_call, livewell.book_call, livewell.raise_fences
    TO livewell_worker;
-- Whether there was a failover; whoever hands out numbers looks.
GRANT SELECT ON SEQUENCE livewell.timeline_seq, livewell.failover_seq TO livewell_worker, livewell_operate;
-- Whether workers must report first, after a restart; whoever asks a limiter looks.
GRANT SELECT ON SEQUENCE livewell.promoted_seq TO livewell_worker, livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.server_started, livewell.restart_wait TO livewell_worker, livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.report_wall TO livewell_worker;

GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.job, livewell.dead_job TO livewell_operate;
GRANT SELECT, INSERT ON livewell.job_history TO livewell_operate;
GRANT SELECT, UPDATE ON livewell.queue, livewell.batch TO livewell_operate;
GRANT SELECT ON SEQUENCE livewell.fence_seq TO livewell_operate;
GRANT SELECT ON livewell.worker, livewell.stat, livewell.tick TO livewell_operate;
GRANT EXECUTE ON FUNCTION
    livewell.list_jobs, livewell.show_job, livewell.show_progress, livewell.list_queues, livewell.list_dead, livewell.list_workers, livewell.cancel_job, livewell.hasten_job,
    livewell.settle_jobs, livewell.redrive_dead, livewell.edit_dead, livewell.pause_queue,
    livewell.enqueue_jobs, livewell.refuse_job, livewell.merge_jobs, livewell.charge_jobs, livewell.release_held, livewell.end_batches, livewell.show_batch, livewell.why_job, livewell.works_queue, livewell.list_limiters
    TO livewell_operate;

GRANT SELECT ON livewell.job, livewell.job_history, livewell.dead_job, livewell.queue, livewell.worker, livewell.stat, livewell.tick, livewell.batch TO livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.list_jobs, livewell.show_job, livewell.show_progress, livewell.list_queues, livewell.list_dead, livewell.list_workers, livewell.show_batch, livewell.why_job, livewell.works_queue, livewell.list_limiters TO livewell_readonly;

-- The system state.
GRANT EXECUTE ON FUNCTION livewell.sample_queue, livewell.state_queue, livewell.state_limits TO livewell_operate, livewell_worker, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.list_limiters TO livewell_worker;
-- What a failure looked like.
GRANT EXECUTE ON FUNCTION livewell.show_traceback TO livewell_operate, livewell_worker, livewell_readonly;
