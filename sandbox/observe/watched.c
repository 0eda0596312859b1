// Who is watched, and the most that they ever were and took together.
#include "observe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

static struct watched *all[WATCHED_MAX];
static int count, peak_threads;
static int64_t peak_memory, peak_scratch;

int watched_count(void) { return count; }

struct watched *watched_find(pid_t tid) {
  for (int index = 0; index < count; index++)
    if (all[index]->tid == tid) return all[index];
  return NULL;
}

struct watched *watched_add(pid_t tid, pid_t process, bool is_server) {
  struct watched *it = count < WATCHED_MAX ? calloc(1, sizeof *it) : NULL;
  if (it == NULL) return NULL;
  *it = (struct watched){.tid = tid, .process = process, .is_server = is_server};
  all[count++] = it;
  int servers = 0;
  for (int index = 0; index < count; index++) servers += all[index]->is_server;
  if (servers > peak_threads) peak_threads = servers;
  return it;
}

void watched_forget(pid_t tid) {
  for (int index = 0; index < count; index++) {
    if (all[index]->tid != tid) continue;
    free(all[index]);
    all[index] = all[--count];
    return;
  }
}

// One field of /proc/PID/status, in bytes.
static int64_t memory_of(pid_t process, const char *field) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%d/status", process);
  FILE *status = fopen(path, "re");
  if (status == NULL) return 0;
  int64_t kib = 0;
  size_t length = strlen(field);
  while (fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, field, length) == 0) kib = strtoll(line + length, NULL, 10);
  fclose(status);
  return kib * 1024;
}

static int64_t scratch_of(pid_t init, const char *folder) {
  char path[64];
  struct statfs found;
  snprintf(path, sizeof path, "/proc/%d/root%s", init, folder);
  return statfs(path, &found) == 0 ? (int64_t)(found.f_blocks - found.f_bfree) * found.f_bsize : 0;
}

// What is taken now; of one process alone, the most that it ever had.
void watched_sample(pid_t init) {
  int64_t sum = 0;
  for (int index = 0; index < count; index++) {
    const struct watched *it = all[index];
    if (!it->is_server || it->tid != it->process) continue;
    sum += memory_of(it->process, "VmRSS:");
    int64_t most = memory_of(it->process, "VmHWM:");
    if (most > peak_memory) peak_memory = most;
  }
  if (sum > peak_memory) peak_memory = sum;
  static const char *const folders[] = {"/tmp", "/home/user", "/dev/shm"};
  for (size_t index = 0; index < sizeof folders / sizeof *folders; index++) {
    int64_t used = scratch_of(init, folders[index]);
    if (used > peak_scratch) peak_scratch = used;
  }
}

void watched_peaks(void) {
  tell_begin("peaks");
  tell_number(peak_threads);
  tell_number(peak_memory);
  tell_number(peak_scratch);
  tell_end();
}
