# SPDX-License-Identifier: Apache-2.0
"""Who does what with which rights: supervisor, workers, and how a worker is confined (design 2 and 3).

supervisor   forks, ends and reaps; knows neither a path below a home nor what an answer means
worker       one account, one scan, in a forked child that never execs
confine      the steps that take a worker's rights away, one method each
identity     ids and capabilities
landlock, seccomp, syscalls, libc    what Linux offers beyond ids
limits       every limit and its reason
answer       what a worker may say
trust        may root run this installation at all
"""
