"""The names of the options that the real programs have; none of them is a misspelling of another one.

Most of these options are not modelled.
"""

from __future__ import annotations

from typing import Final


def _options(text: str) -> frozenset[str]:
    """Return the words of *text*, which are the names of options without their dashes."""
    return frozenset(text.split())


FIO: Final = _options("""
    allow_file_create allow_mounted_write allrandrepeat apptag apptag_mask arguments atomic ba bindname
    block_error_percentiles blockalign blocksize blocksize_range blocksize_unaligned brick bs bs_unaligned
    bsrange bssplit buffer_compress_chunk buffer_compress_percentage buffer_pattern buffered busy_poll
    busy_wait_polling bwavgtime cgroup cgroup_nodelete cgroup_weight chunk_size clat_percentiles
    clientname clocksource clustername cmd_type cmdprio cmdprio_bssplit cmdprio_class cmdprio_percentage
    conf continue_on_error cpuchunks cpuload cpumask cpumode cpus_allowed cpus_allowed_policy create_fsync
    create_on_open create_only create_serialize cuda_io dataplacement dedupe_global dedupe_mode
    dedupe_percentage dedupe_working_set_percentage description direct direct_write_to_pmem directory
    disable_bw disable_bw_measurement disable_clat disable_lat disable_slat disk_util do_verify donorname
    dp_scheme end_fsync error_dump exec_postrun exec_prerun exit_on_io_done exit_what exitall
    exitall_on_error experimental_verify fadvise_hint fallocate fdatasync fdp fdp_pli fdp_pli_select
    file_append file_service_type filename filename_format fileoffset filesize fill_device fill_fs
    fixedbufs flow flow_id flow_sleep force_async fsync fsync_on_close gid gpu_dev_ids grace_time
    group_reporting gtod_cpu gtod_reduce hdfsdirectory hipri hipri_percentage hostname http_host http_mode
    http_pass http_s3_key http_s3_keyid http_s3_region http_s3_sse_customer_algorithm
    http_s3_sse_customer_key http_s3_storage_class http_swift_auth_token http_user http_verbose https
    ignore_error ignore_zone_limits inplace interface invalidate io_limit io_size io_submit_mode iodepth
    iodepth_batch iodepth_batch_complete iodepth_batch_complete_max iodepth_batch_complete_min
    iodepth_batch_submit iodepth_low ioengine iomem iomem_align iopsavgtime ioscheduler job_max_open_zones
    job_start_clock_id kb_base lat_percentiles latency_percentile latency_run latency_target
    latency_window listen lockfile lockmem log_alternate_epoch log_alternate_epoch_clock_id log_avg_msec
    log_compression log_compression_cpus log_entries log_hist_coarseness log_hist_msec log_issue_time
    log_max_value log_offset log_prio log_store_compressed log_unix_epoch log_window_value loops
    max_latency max_open_zones md_per_io_size mem merge_blktrace_file merge_blktrace_iters
    merge_blktrace_scalars mss name namenode new_group nfs_url nice nodelay nonvectored norandommap nowait
    nr_files nrfiles num_range numa_cpu_nodes numa_mem_policy number_ios numjobs object_class offset
    offset_align offset_increment opendir openfiles overwrite per_job_logs percentage_random
    percentile_list pi_act pi_chk pingpong plid_select plids pool port pre_read prio prioclass profile
    program protocol ramp_time random_distribution random_generator randrepeat randseed rate rate_cycle
    rate_ignore_thinktime rate_iops rate_iops_min rate_min rate_process ratecycle ratemin rbdname
    read_beyond_wp read_iolog read_iolog_chunked readfua readwrite refill_buffers registerfiles
    replay_align replay_no_stall replay_redirect replay_scale replay_skip replay_time_scale runtime rw
    rw_sequencer rwmixread rwmixwrite scramble_buffers serialize_overlap sg_write_mode significant_figures
    size skip_bad slat_percentiles softrandommap sqthread_poll sqthread_poll_cpu ss ss_dur ss_ramp
    startdelay stat_type stats std_redirect steadystate steadystate_duration steadystate_ramp_time
    stonewall stream_id sync sync_file_range thinktime thinktime_blocks thinktime_blocks_type
    thinktime_iotime thinktime_spin thp thread time_based timeout touch_objects trim_backlog
    trim_backlog_batch trim_percentage trim_verify_zero ttl uid uncached unified_rw_reporting
    unique_filename unit_base unlink unlink_each_loop uri userspace_reap verb verify verify_async
    verify_backlog verify_backlog_batch verify_dump verify_fatal verify_interval verify_offset verify_only
    verify_pattern verify_state_load verify_state_save volume wait_for wait_for_previous window_size
    write_barrier write_bw_log write_hint write_hist_log write_iolog write_iops_log write_lat_log writefua
    zero_buffers zone_reset_frequency zone_reset_threshold zonecapacity zonemode zonerange zonesize
    zoneskip
    alloc-size append-terse aux-path bandwidth-log client cmdhelp cpuclock-test crctest daemonize debug
    enghelp eta eta-interval eta-newline help idle-prof inflate-log max-jobs merge-blktrace-only minimal
    output output-format parse-only readonly remote-config section server showcmd status-interval
    terse-version trigger trigger-file trigger-remote trigger-timeout version warnings-fatal
""")
"""fio 3.33: --cmdhelp=all with aliases, --enghelp of all engines, --help; and some of later releases."""
FS_MARK: Final = _options("h k F S D N d l L n p r s t w v")
"""fs_mark 3.3: its usage, and the option -v."""
DD: Final = _options("bs cbs conv count ibs if iflag iseek obs of oflag oseek seek skip status")
"""The operands of dd of coreutils 9.1."""
SYNC: Final = _options("d data f file-system help version")
"""sync of coreutils 9.1."""
RM: Final = _options(
    "f force i I interactive one-file-system no-preserve-root preserve-root r R recursive d dir v verbose"
    " help version"
)
"""rm of coreutils 9.1."""
MV: Final = _options(
    "b backup f force i interactive n no-clobber strip-trailing-slashes S suffix t target-directory T"
    " no-target-directory u update v verbose Z context help version"
)
"""mv of coreutils 9.1."""
TRUNCATE: Final = _options("c no-create o io-blocks r reference s size help version")
"""truncate of coreutils 9.1."""
FALLOCATE: Final = _options(
    "c collapse-range d dig-holes i insert-range l length n keep-size o offset p punch-hole z zero-range x"
    " posix v verbose h help V version"
)
"""fallocate of util-linux 2.38."""
XFS_IO: Final = _options("a c C d f F i I L m n p P r R s S t T V x")
"""xfs_io of xfsprogs 6.1."""
