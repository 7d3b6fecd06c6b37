//! The journal on both stores: one suite, two runners.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod postgres;
mod server;
mod sqlite;
mod suite;

/// Calls a macro with every test of the suite.
macro_rules! every_test {
    ($make:ident) => {
        $make! {
            append: a_run_goes_from_the_queue_to_its_end,
            append: the_same_id_twice_is_one_run,
            append: what_cannot_follow_is_refused_and_nothing_of_it_is_stored,
            append: a_run_that_stops_ends_its_lease_and_its_step,
            append: a_deferred_run_goes_back_to_the_queue_and_is_not_taken_before_its_time,
            append: strange_characters_come_back_as_they_can,
            append: what_is_too_large_is_refused,
            append: numbers_come_back_exactly,
            append: time_does_not_go_backwards_within_a_run,
            append: the_journals_own_events_cannot_be_forged,
            attended: an_attended_run_is_never_queued_and_goes_on_after_its_end,
            attended: an_attended_run_takes_no_place_of_the_queue,
            attended: a_run_is_created_with_a_step_in_progress,
            attended: of_two_who_continue_an_attended_run_one_wins,
            attended: a_run_is_found_among_those_of_its_kind,
            queue: a_run_is_given_only_to_a_worker_that_has_its_labels_and_its_kind,
            queue: larger_priorities_come_first_and_then_the_oldest_or_the_newest,
            queue: caps_hold_in_all_and_per_workspace,
            queue: caps_are_exact_when_many_workers_come_at_once,
            queue: every_run_is_taken_once_when_many_workers_come_at_once,
            queue: a_lost_lease_puts_the_run_back_and_fences_its_worker,
            queue: many_reapers_at_once_are_harmless,
            queue: a_heartbeat_keeps_the_lease,
            queue: a_run_that_cannot_be_read_keeps_no_other_waiting,
            queue: a_released_run_is_back_in_the_queue,
            queue: a_certain_run_can_be_taken,
            queue: what_was_refused_stands_in_nobodys_way,
            queue: a_long_history_is_not_looked_at,
            leases: a_clock_that_jumps_starts_no_step_twice,
            leases: a_clock_that_jumps_keeps_no_run_with_a_worker_that_is_gone,
            leases: a_lease_from_before_a_reboot_is_over_in_a_file,
            leases: a_worker_that_renews_its_lease_is_not_waited_for_any_longer,
            leases: a_run_of_a_worker_that_is_gone_can_be_cancelled,
            leases: a_certain_run_is_waited_for_while_its_lease_is_observed,
            leases: a_lease_of_an_older_version_ends_when_it_is_over_and_silent,
            order: a_run_that_nobody_has_is_paused_and_cancelled_at_once,
            order: a_worker_hears_of_a_wish_by_its_heartbeat,
            order: a_wish_takes_effect_when_the_worker_is_lost,
            order: what_makes_no_sense_is_refused_with_a_reason,
            order: a_failed_run_is_retried_and_a_completed_one_is_not,
            order: a_run_that_is_over_is_forgotten_with_all_that_belongs_to_it,
            order: what_happens_after_the_end_is_remembered,
            read: a_run_is_found_by_id_part_name_and_last,
            read: lists_come_in_pages_newest_first,
            read: a_tail_misses_nothing_while_many_write,
            read: a_change_is_heard_of,
            read: what_does_not_exist_is_not_found,
            read: replay_says_what_was_tampered_with,
            read: an_event_of_a_later_version_is_kept_and_shown,
            read: an_event_of_an_earlier_version_is_read,
            read: a_damaged_event_hides_no_other,
            model: random_operations_agree_with_the_fold,
            memory: what_runs_see_and_try_is_remembered_in_the_same_breath,
            memory: a_fix_that_fails_loses_its_confidence,
            memory: a_worker_that_lost_its_run_teaches_nothing,
            memory: what_is_stored_is_the_fold_of_all_events,
            memory: what_a_forgotten_run_has_learnt_stays,
            memory: nothing_learnt_in_one_repository_is_known_in_another,
            memory: a_lesson_twice_changes_nothing_and_what_was_seen_here_stands,
            memory: secrets_are_not_remembered,
            memory: what_is_no_failure_is_refused,
            memory: a_failure_is_unlearnt_with_all_that_belongs_to_it,
            memory: many_who_learn_at_once_lose_nothing,
            memory: a_journal_of_the_first_version_is_brought_up_to_date,
            letters: what_could_not_be_handled_waits_for_somebody,
            letters: the_same_twice_is_one_letter,
            letters: of_two_who_try_it_again_one_wins,
            letters: a_letter_goes_only_where_it_can,
            letters: letters_are_listed_by_urgency_in_pages,
            letters: a_letter_holds_no_secrets_and_is_not_too_large,
        }
    };
}
pub(crate) use every_test;
