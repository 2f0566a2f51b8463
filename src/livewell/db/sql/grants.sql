-- Who may do what with the objects of db. Runs as livewell_owner, last in its package, again when
-- anything in the package changes. How to read the matrix: functions/grant_rights.sql.

-- EXECUTE for PUBLIC is a default of the whole database, so it cannot be revoked IN SCHEMA
-- livewell; the owner owns nothing else, so this is as narrow.
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
REVOKE ALL ON SCHEMA livewell FROM PUBLIC;

SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

schema livewell                     U        U        U        U        U

-- tables. release, migration, function_source, grant_source: what a process reads to learn whether
-- this schema fits it. livewell_api has no table rights: a server checks with another of its pools.
-- state_sample: operators and workers keep samples for each other, whoever may only look does
-- without. audit: whoever may act writes a line, nobody changes one.
table audit                         -        -        r        r        r
table function_source               -        r        r        r        r
table grant_source                  -        r        r        r        r
table migration                     -        r        r        r        r
table release                       -        r        r        r        r
table state_sample                  -        -        raw      raw      r
table warning                       -        -        r        rwd      r

-- functions
function audit_act                  -        -        X        X        -
function find_sample                -        -        X        X        X
function keep_sample                -        -        X        X        X
function list_acts                  -        -        X        X        X
function list_audit                 -        -        X        X        X
function now                        X        X        X        X        X
function prune_audit                -        -        -        X        -
function prune_warnings             -        -        -        X        -
function record_act                 -        -        X        X        -
function state_database             -        -        X        X        X
function table_pages                -        -        X        X        X
function warn                       X        X        X        X        -
$matrix$);
