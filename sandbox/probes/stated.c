// Attempts that people state: on every path that a glob matches here, and on hosts by their names.
#include "probes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAMED = 20, DEPTH = 64 };

struct search {
  const char *glob;
  int (*run)(const char *path);
  long matched, opened;
  int error;
};

// As the globs of rules: `*` and `?` stop at a slash, `**` does not.
static int matches(const char *glob, const char *path) {
  for (; *glob != '\0'; glob++, path++) {
    if (*glob == '*') {
      int crosses = glob[1] == '*';
      while (*glob == '*') glob++;
      for (;; path++) {
        if (matches(glob, path)) return 1;
        if (*path == '\0' || (*path == '/' && !crosses)) return 0;
      }
    }
    if (*path == '\0' || (*glob == '?' ? *path == '/' : *glob != *path)) return 0;
  }
  return *path == '\0';
}

static void try_path(struct search *search, const char *path) {
  search->matched++;
  errno = 0;
  if (search->run(path) < 0) {
    if (search->error == 0 || search->error == ENOENT) search->error = errno;
  } else if (search->opened++ < NAMED) {
    fprintf(found, "%s\n", path);
  }
}

// Folders that cannot be listed are passed by: what is in them has no name here. Links are tried and not followed down.
static void walk(struct search *search, const char *folder, int depth) {
  DIR *entries = depth > 0 ? opendir(*folder == '\0' ? "/" : folder) : NULL;
  if (entries == NULL) return;
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    char path[PATH_MAX];
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path) continue;
    if (matches(search->glob, path)) try_path(search, path);
    struct stat status;
    if (entry->d_type == DT_DIR || (entry->d_type == DT_UNKNOWN && lstat(path, &status) == 0 && S_ISDIR(status.st_mode)))
      walk(search, path, depth - 1);
  }
  closedir(entries);
}

// From the last folder that the glob names in full, as deep as it can match.
static int try_all(const char *glob, int (*run)(const char *path)) {
  struct search search = {.glob = glob, .run = run};
  size_t plain = strcspn(glob, "*?");
  if (glob[plain] == '\0') {
    try_path(&search, glob);
  } else {
    char folder[PATH_MAX];
    int depth = 1;
    while (plain > 0 && glob[plain - 1] != '/') plain--;
    if (plain > sizeof folder) return errno = ENAMETOOLONG, -1;
    snprintf(folder, sizeof folder, "%.*s", (int)plain - 1, glob);
    for (const char *rest = glob + plain; *rest != '\0'; rest++) depth += *rest == '/';
    walk(&search, folder, strstr(glob, "**") != NULL ? DEPTH : depth);
  }
  if (search.opened > NAMED) fprintf(found, "and %ld more\n", search.opened - NAMED);
  return search.opened > 0 ? 0 : (errno = search.error == 0 ? ENOENT : search.error, -1);
}

// A folder is read where something in it is seen.
static int read_folder(int fd) {
  DIR *entries = fdopendir(fd);
  int seen = 0;
  if (entries == NULL) return -1;
  while (readdir(entries) != NULL) seen++;
  closedir(entries);
  return seen > 2 ? 0 : (errno = ENODATA, -1);
}

// What stands in a covered file's place takes everything and has nothing.
static int is_null_device(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

static int read_path(const char *path) {
  char byte;
  struct stat status;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) return read_folder(fd);
  ssize_t got = is_null_device(fd) ? (errno = ENODATA, -1) : read(fd, &byte, 1);
  int error = errno;
  close(fd);
  return got >= 0 || error == EAGAIN ? 0 : (errno = error, -1);
}

// Writes nothing: what can be opened, or a folder in which one may create. What is absent is created, and removed again.
static int write_path(const char *path) {
  struct stat status;
  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) return access(path, W_OK);
  int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) unlink(path);
  }
  int error = errno, is_null = fd >= 0 && is_null_device(fd);
  if (fd >= 0) close(fd);
  return is_null ? (errno = ENODATA, -1) : (errno = error, fd);
}

// Starts it with nothing on its streams, and ends it as soon as it has started.
static int exec_path(const char *path) {
  int ends[2], error = 0;
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    execv(path, (char *[]){(char *)path, NULL});
    error = errno;
    _exit(write(ends[1], &error, sizeof error) == sizeof error ? 0 : 1);
  }
  close(ends[1]);
  if (pid < 0) return close(ends[0]), -1;
  ssize_t got = read(ends[0], &error, sizeof error);
  close(ends[0]);
  kill(pid, SIGKILL);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
  return got == 0 ? 0 : (errno = error, -1);
}

static int read_any(int count, char **arguments) { return (void)count, try_all(arguments[0], read_path); }
static int write_any(int count, char **arguments) { return (void)count, try_all(arguments[0], write_path); }
static int exec_any(int count, char **arguments) { return (void)count, try_all(arguments[0], exec_path); }

const struct attempt stated_attempts[] = {
    {"read-any", 1, read_any},
    {"write-any", 1, write_any},
    {"exec-any", 1, exec_any},
    {NULL, 0, NULL},
};
