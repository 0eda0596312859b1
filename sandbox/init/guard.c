// Outlives the daemon: holds the locks of its directories, and removes what a killed daemon can't.
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

enum { OWN_END_MS = 1000, KILLED_END_MS = 2000, REMOVED_MS = 500, STEP_MS = 20 };
enum { LINE_BYTES = PATH_BYTES + 16 };

static void say(const char *word, const char *rest) {
  char line[LINE_BYTES + 128];
  int length = snprintf(line, sizeof line, "%s %s\n", word, rest);
  // A daemon that does not listen any more is found out by the end of stdin.
  write_all(STDOUT_FILENO, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

// What stderr says in words, for whoever goes by the number.
static void say_why(int status, const char *step, const char *object, int error) {
  (void)status, (void)step, (void)object;
  char number[16];
  snprintf(number, sizeof number, "%d", error);
  say("failed", number);
}

// The guard ends by `done` or after the daemon; what is sent to the daemon's group is not for it.
static void outlive_the_daemon(void) {
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  setsid();
  // One that is stopped would keep the locks of a daemon that is gone: the end of the daemon wakes it.
  if (prctl(PR_SET_PDEATHSIG, SIGCONT) != 0) die("guard", "the daemon's end", errno);
}

// A directory and the file in it that names its holder. Both are locked: a file can be removed under who holds it.
struct lock {
  int directory;
  int file;
};

static struct lock open_lock(const char *directory) {
  char path[PATH_BYTES];
  struct stat status;
  int length = snprintf(path, sizeof path, "%s/daemon.lock", directory);
  if (directory[0] != '/' || length < 0 || (size_t)length >= sizeof path)
    refuse("guard", directory, "not an absolute path of usual length");
  int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) die("guard", path, errno);
  if (fstat(fd, &status) != 0) die("guard", path, errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid())
    refuse("guard", path, "not a regular file of this user");
  int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) die("guard", directory, errno);
  return (struct lock){.directory = folder, .file = fd};
}

// The daemon's own descriptors of it, which it passes from 3 on: what is locked then is so until both of us have closed them.
static struct lock passed_lock(int index, const char *directory) {
  struct lock lock = {.file = STDERR_FILENO + 1 + 2 * index, .directory = STDERR_FILENO + 2 + 2 * index};
  struct stat folder, file;
  if (fstat(lock.directory, &folder) != 0 || fstat(lock.file, &file) != 0) die("guard", directory, errno);
  if (!S_ISDIR(folder.st_mode)) refuse("guard", directory, "not a directory");
  if (!S_ISREG(file.st_mode) || file.st_uid != geteuid()) refuse("guard", directory, "its lock is not a regular file of this user");
  return lock;
}

// Returns whether nobody else has it, or, where `may_not_lock`, it is of a file system that locks no directories, such as NFS.
static bool take(int fd, bool may_not_lock) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK && !may_not_lock) die("guard", "flock", errno);
  return errno != EWOULDBLOCK;
}

// Tells who holds the lock, as its file names it: the pid, then for a state directory where that daemon answers.
static void say_busy(int fd, const char *word) {
  char holder[PATH_BYTES + 16];
  ssize_t length = pread(fd, holder, sizeof holder - 1, 0);
  holder[length > 0 ? length : 0] = '\0';
  holder[strcspn(holder, "\n")] = '\0';
  say(word, holder);
}

// Returns whether the lock is ours; its file then names the daemon, for whoever comes second.
static bool take_lock(struct lock lock, const char *directory, const char *runtime_dir) {
  char holder[PATH_BYTES + 16];
  if (!take(lock.directory, true) || !take(lock.file, false)) return false;
  int length = snprintf(holder, sizeof holder, "%d %s\n", getppid(), runtime_dir);
  if (ftruncate(lock.file, 0) != 0 || pwrite(lock.file, holder, (size_t)length, 0) != length)
    die("guard", directory, errno);
  return true;
}

// Unlocks before it closes: the daemon may have the same open files still.
static void let_go_of(const struct lock *locks, int count) {
  for (int index = 0; index < count; index++) {
    flock(locks[index].file, LOCK_UN);
    flock(locks[index].directory, LOCK_UN);
    close(locks[index].file);
    close(locks[index].directory);
  }
}

static const char *take_line(struct entries *entries, struct daemon *daemon, const char *line) {
  static const char ends[] = "ends ";
  if (strncmp(line, ends, sizeof ends - 1) == 0) return note_end(daemon, line + sizeof ends - 1);
  return add_entry(entries, line);
}

enum heard { DONE, GONE, OVERDUE };

// Takes the daemon's lines until `done`, until the daemon is gone, or until it has said that it ends and does not.
static enum heard hear_out(struct entries *entries, struct daemon *daemon) {
  static char line[LINE_BYTES];
  size_t length = 0;
  bool is_long = false;
  while (speaks_in_time(daemon, STDIN_FILENO)) {
    char byte;
    ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return GONE;
    if (byte != '\n') {
      is_long = is_long || byte == '\0' || length == sizeof line - 1;
      if (!is_long) line[length++] = byte;
      continue;
    }
    line[length] = '\0';
    if (!is_long && strcmp(line, "done") == 0) return DONE;
    const char *reason = is_long ? "line too long, or with a NUL" : take_line(entries, daemon, line);
    if (reason != NULL) say("refused", reason);
    length = 0;
    is_long = false;
  }
  return OVERDUE;
}

static size_t signal_all(const struct entries *entries, int number) {
  size_t count = 0;
  for (size_t index = 0; index < entries->count; index++)
    if (entries->list[index].kind == CGROUP) count += signal_cgroups_below(entries->list[index].path, number);
  return count;
}

static void wait_until_empty(const struct entries *entries, int number, int for_ms) {
  const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
  for (int64_t deadline = now_ms() + for_ms; signal_all(entries, number) > 0 && now_ms() < deadline;)
    nanosleep(&step, NULL);
}

// The kernel keeps a cgroup busy for a moment after its last process ended.
static void remove_cgroups_patiently(const char *path) {
  const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
  for (int64_t deadline = now_ms() + REMOVED_MS; !remove_cgroups(path) && now_ms() < deadline;)
    nanosleep(&step, NULL);
}

// Latest entry first: a folder was named before what was put into it.
static void remove_all(const struct entries *entries) {
  for (size_t index = entries->count; index-- > 0;) {
    const char *path = entries->list[index].path;
    switch (entries->list[index].kind) {
      case CGROUP: remove_cgroups_patiently(path); break;
      case FILE_TO_UNLINK: unlink(path); break;
      case FOLDER_TO_REMOVE: rmdir(path); break;
      case DOORS: remove_doors(path); break;
    }
  }
}

int guard_main(int argc, char **argv) {
  static struct entries entries;
  bool is_passed = argc > 0 && strcmp(argv[0], "passed") == 0;
  if (is_passed) argc--, argv++;
  if (argc != 1 && argc != 2) refuse("guard", "arguments", "expected: guard [passed] RUNTIME_DIR [STATE_DIR]");

  on_death(say_why, false);

  // 1. Out of the daemon's session: what ends the daemon must not end its guard. Nothing else stays open.
  outlive_the_daemon();
  close_from(STDERR_FILENO + 1 + (is_passed ? 2 * argc : 0));
  struct daemon daemon = hold_daemon();

  // 2. The locks live as long as the daemon and its things: a new daemon waits until the old one's leavings are gone, and
  // while the old one lives, be it stopped and without a guard, none comes in.
  struct lock locks[2];
  static const char *const words[2] = {"busy", "busy-state"};
  for (int index = 0; index < argc; index++) {
    locks[index] = is_passed ? passed_lock(index, argv[index]) : open_lock(argv[index]);
    if (take_lock(locks[index], argv[index], argv[0])) continue;
    let_go_of(locks, index); // before it is said: who hears it may take them at once
    say_busy(locks[index].file, words[index]);
    return 1;
  }
  wake_in_turn(&daemon);
  leave_no_core(&daemon);
  write_all(STDOUT_FILENO, "held\n", 5);

  // 3. The daemon names what it made, before it makes it.
  let_go_of_code();
  enum heard heard = hear_out(&entries, &daemon);

  // 4. A proper end: the next daemon need not wait, even if this one can't exit.
  if (heard == DONE) {
    let_go_of(locks, argc);
    if (daemon.deadline != 0) write_all(STDOUT_FILENO, "free\n", 5);
    see_off(&daemon);
    return 0;
  }

  // 5. The daemon died, or dies now. Every sandbox has lost its channel and ends; what is left after a second is killed.
  if (heard == OVERDUE) see_off(&daemon);
  wait_until_empty(&entries, 0, OWN_END_MS);
  wait_until_empty(&entries, SIGKILL, KILLED_END_MS);

  // 6. Nothing lives in them now. One that went without a word, and hangs all the same, still has the locks.
  remove_all(&entries);
  see_off(&daemon);
  return 0;
}
