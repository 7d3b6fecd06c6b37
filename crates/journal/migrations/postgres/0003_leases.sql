-- A lease is measured by clocks that are never set, so `lease_until_ms` (wall clock) is written only by older versions and
-- is NULL for every lease taken since. Programs of an older version that are still open never end such a lease.

-- Counts the renewals of the run's leases: a lease that is still alive changes it.
ALTER TABLE run ADD COLUMN lease_beat BIGINT NOT NULL DEFAULT 0;
-- The time that the worker may be silent.
ALTER TABLE run ADD COLUMN lease_length_ms BIGINT;
-- The boot of the worker's machine, and the end of the lease in milliseconds of that boot.
ALTER TABLE run ADD COLUMN lease_boot TEXT;
ALTER TABLE run ADD COLUMN lease_boot_until_ms BIGINT;
-- The end of the lease for people, in milliseconds since 1970. Nothing is decided by it alone.
ALTER TABLE run ADD COLUMN lease_shown_until_ms BIGINT;
