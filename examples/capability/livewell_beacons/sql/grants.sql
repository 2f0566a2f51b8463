GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.beacon TO livewell_worker, livewell_operate;
GRANT SELECT ON livewell.beacon TO livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.see_beacon, livewell.forget_beacon
    TO livewell_worker, livewell_operate;
GRANT EXECUTE ON FUNCTION livewell.prune_beacons, livewell.rule_beacon_silent TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.state_beacons, livewell.rules_beacons
    TO livewell_worker, livewell_operate, livewell_readonly;
