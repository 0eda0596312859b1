// What PID 1 is told at the gate: targets, the way out, and the server; and how it says why it refuses.
#include "../init/init.c"

#include <linux/filter.h>

#include "harness.h"

static struct orders orders;
static const char *said;

// A failure has to come through as one frame: errno, and two texts with their ends.
static void expect_failure(int fd, const char *bytes, size_t length) {
  if (fd != FD_CONTROL) return;
  expect(length >= 5 + 4 + 2 && bytes[0] == 'X', "another frame than that of a failure");
  expect(get_u32((const unsigned char *)bytes + 1) == length - 5, "a frame of another length than it says");
  said = bytes + 9;
  const char *object = memchr(said, 0, length - 9);
  expect(object != NULL && memchr(object + 1, 0, (size_t)(bytes + length - object - 1)) == bytes + length - 1,
         "a failure that is not two texts");
}

static void parse(void) {
  read_targets(&orders);
  if (orders.egress.door != NULL) plan_names(&orders.egress);
  on_death(report_failure, false);
  read_go(&orders);
}

static void judge_egress(const struct egress_orders *egress) {
  expect((egress->door != NULL) == (egress->watched != NULL), "a door without its filter");
  expect(egress->grant_count <= GRANTS_MAX && egress->pool <= POOL_MAX, "more than there is room for");
  expect(egress->door != NULL || egress->grant_count == 0, "a grant without a door");
  if (egress->door == NULL) return;
  expect(egress->door[0] == '/' && strlen(egress->door) < 108 && egress->proxy_port > 0,
         "a door that nobody can dial");
  exact(egress->watched, egress->watched_count * sizeof *egress->watched);
  for (size_t index = 0; index < egress->grant_count; index++) {
    const struct grant *grant = &egress->grants[index];
    expect(grant->port > 0 && strlen(grant->host) <= HOST_MAX + 2, "a grant of nothing");
    expect(grant->host[0] != '*' || egress->pool > 0, "a wildcard without addresses");
    expect(grant->host[strspn(grant->host, "abcdefghijklmnopqrstuvwxyz0123456789-_.*")] == '\0',
           "a host that is none");
  }
  expect(entry_count <= ENTRIES_MAX && listener_count <= LISTENERS_MAX, "more names than there is room for");
  for (size_t index = 0; index < listener_count; index++)
    expect(listeners[index].entry < entry_count && listeners[index].port > 0, "a listener of nobody's");
}

static void judge(void) {
  expect(orders.argv_count > 0 && orders.argv[orders.argv_count] == NULL, "argv without its end");
  expect(orders.env[orders.env_count] == NULL, "an environment without its end");
  expect(orders.target_count <= TARGETS_MAX && orders.argv_count <= STRINGS_MAX &&
             orders.env_count <= STRINGS_MAX && orders.file_count <= FILES_MAX &&
             orders.limit_count <= LIMITS_MAX && orders.counter_count <= COUNTERS_MAX,
         "more than there is room for");
  expect(orders.cwd != NULL && orders.cwd[0] == '/' && orders.program[0] == '/' && orders.has_options,
         "an incomplete go");
  for (size_t index = 0; index < orders.target_count; index++)
    expect(orders.targets[index][0] == '/', "a relative target");
  for (size_t index = 0; index < orders.argv_count; index++)
    exact(orders.argv[index], strlen(orders.argv[index]));
  for (size_t index = 0; index < orders.env_count; index++)
    expect(strchr(orders.env[index], '=') > orders.env[index], "a variable without a name");
  for (size_t index = 0; index < orders.file_count; index++) {
    const struct file *file = &orders.files[index];
    expect(file->path[0] == '/' && (file->mode & ~0777U) == 0, "a file that is out of the ordinary");
    exact(file->bytes, file->length);
  }
  for (size_t index = 0; index < orders.counter_count; index++)
    expect(orders.counters[index].name[0] != '\0' && strchr(orders.counters[index].name, '/') == NULL,
           "a counter that leads away");
}

void fuzz_gate(void) {
  memset(&orders, 0, sizeof orders);
  memset(entries, 0, entry_count * sizeof entries[0]);
  listener_count = entry_count = 0;
  said = NULL;
  on_written = expect_failure;
  bool is_alive = outlives(parse);
  expect(is_alive || ended_with == EXIT_SETUP, "another end than that of a refusal");
  if (!is_alive) return;
  judge();
  judge_egress(&orders.egress);
}
