// What PID 1 is told before go, and the parts that act on it.
#ifndef SALLYPORT_SANDBOX_H
#define SALLYPORT_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "egress.h"

enum { TARGETS_MAX = 1024, STRINGS_MAX = 4096, FILES_MAX = 256, LIMITS_MAX = 32, COUNTERS_MAX = 32 };

struct file {
  mode_t mode;
  const char *path;
  const void *bytes;
  size_t length;
};

struct limit {
  uint32_t resource;
  uint64_t soft, hard;
};

struct counter {
  const char *name;
  uint64_t value;
};

struct orders {
  size_t target_count, argv_count, env_count, file_count, limit_count, counter_count;
  const char *targets[TARGETS_MAX];
  struct egress_orders egress;
  char *argv[STRINGS_MAX + 1];
  char *env[STRINGS_MAX + 1];
  struct file files[FILES_MAX];
  struct limit limits[LIMITS_MAX];
  struct counter counters[COUNTERS_MAX];
  const char *cwd;
  const char *program;
  bool is_covered, has_options, is_one_exec;
  uint32_t eof_ms, term_ms;
};

// gate.c: the frames up to `report`, and those up to `go`.
void read_targets(struct orders *orders);
void report_targets(const struct orders *orders);
void read_go(struct orders *orders);
// covered.c: returns when /proc is covered; dies where it can't be.
void have_covered(void);
// files.c, limits.c
void write_files(const struct orders *orders);
// Where the kernel's counters of the user namespace are mounted; /proc/sys/user until told otherwise.
void find_counters_at(const char *folder);
void write_counters(const struct orders *orders);
void set_limits(const struct orders *orders);
// exec.c: the child's side; ends in the server's program or in a failure on `failures`.
_Noreturn void become_server(const struct orders *orders, int failures);
// ticket.c: executes once, then never again.
int exec_once(const char *program, char *const argv[], char *const env[]);
// supervise.c: the rest of PID 1's life.
struct watch {
  pid_t server;
  pid_t relay;   // 0 where the network is empty
  int failures;  // read end; its end of file means that the exec succeeded; -1 afterwards
  int signals;
  uint32_t eof_ms, term_ms;
};
// Dies where the relay has ended already: at the gate nobody was listening for it.
void expect_relay(struct watch *watch);
_Noreturn void supervise(struct watch *watch);

// What the child says of a step that failed between fork and exec.
struct failure {
  uint32_t status, error;
  char step[32];
  char object[256];
};

#endif
