// Limits that only a process inside can set: the server's rlimits, and its user namespace's counters.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "init.h"
#include "sandbox.h"

static const char *counters_folder = "/proc/sys/user";

void find_counters_at(const char *folder) { counters_folder = folder; }

// /proc/sys/user/* belongs to the namespace of whoever opens it, so this caps the sandbox and nothing else.
// With max_user_namespaces at 0 the server gets no namespace in which it would have capabilities again.
void write_counters(const struct orders *orders) {
  for (size_t index = 0; index < orders->counter_count; index++) {
    const struct counter *counter = &orders->counters[index];
    char path[128], value[24];
    int path_length = snprintf(path, sizeof path, "%s/%s", counters_folder, counter->name);
    if (path_length < 0 || (size_t)path_length >= sizeof path)
      refuse("counter", counter->name, "name too long");
    int length = snprintf(value, sizeof value, "%llu", (unsigned long long)counter->value);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) die("counter", path, errno);
    if (write(fd, value, (size_t)length) != length) die("counter", path, errno);
    close(fd);
  }
}

// A daemon may stand under tighter limits than the profile gives. No right is left here to raise them, and tighter is safe.
static void stay_below_own(int resource, struct rlimit *value) {
  struct rlimit own;
  if (getrlimit(resource, &own) != 0 || value->rlim_max <= own.rlim_max) return;
  value->rlim_max = own.rlim_max;
  if (value->rlim_cur > own.rlim_max) value->rlim_cur = own.rlim_max;
}

// In the child only: under RLIMIT_NPROC or RLIMIT_NOFILE of the server PID 1 could not do its work.
void set_limits(const struct orders *orders) {
  for (size_t index = 0; index < orders->limit_count; index++) {
    const struct limit *limit = &orders->limits[index];
    struct rlimit value = {.rlim_cur = limit->soft, .rlim_max = limit->hard};
    char name[24];
    snprintf(name, sizeof name, "resource %u", limit->resource);
    stay_below_own((int)limit->resource, &value);
    if (setrlimit((int)limit->resource, &value) != 0) die("limit", name, errno);
  }
}
