-- Who may do what with the objects of db. Runs as livewell_owner, last in its package, again whenever anything in the package changed.
-- GRANT only adds: to take a right away, write the REVOKE here.

-- EXECUTE for PUBLIC is a default of the whole database, so it cannot be revoked IN SCHEMA livewell; the owner owns nothing else, so this is as narrow.
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
REVOKE ALL ON SCHEMA livewell FROM PUBLIC;

GRANT USAGE ON SCHEMA livewell TO livewell_api, livewell_operate, livewell_hub, livewell_worker, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.now() TO livewell_api, livewell_operate, livewell_hub, livewell_worker, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.warn(text, text, text) TO livewell_api, livewell_operate, livewell_hub, livewell_worker;

-- What a process reads to learn whether this schema fits it. livewell_api has no table rights: a server checks with another of its pools.
GRANT SELECT ON livewell.release, livewell.migration, livewell.function_source, livewell.grant_source
    TO livewell_operate, livewell_hub, livewell_worker, livewell_readonly;

GRANT SELECT ON livewell.warning TO livewell_operate, livewell_readonly;
GRANT SELECT, UPDATE, DELETE ON livewell.warning TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.prune_warnings(integer, integer) TO livewell_worker;

-- The system state: operators and workers keep samples for each other, whoever may only look does without.
GRANT SELECT, INSERT, UPDATE ON livewell.state_sample TO livewell_operate, livewell_worker;
GRANT SELECT ON livewell.state_sample TO livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.find_sample, livewell.keep_sample, livewell.table_pages, livewell.state_database TO livewell_operate, livewell_worker, livewell_readonly;

-- What operators did: whoever may act writes a line, nobody changes one.
GRANT SELECT ON livewell.audit TO livewell_operate, livewell_worker, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.record_act TO livewell_operate, livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.list_audit TO livewell_operate, livewell_worker, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.prune_audit TO livewell_worker;
