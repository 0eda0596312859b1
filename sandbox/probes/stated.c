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

// Of what was open so many are named, of what was shut and of folders that list nothing so few.
enum { NAMED = 20, FEW = 5, DEPTH = 64 };

struct search {
  const char *glob;
  int (*run)(const char *path);
  // Whether a name that is not there could be made in a folder; null where only what is there is tried.
  int (*make)(const char *folder);
  long opened, shut, closed;
  // The first place of which something was not tried, and why; null where all was.
  char left[PATH_MAX];
  const char *why;
  int error;
  // Links to folders that were followed: by the name of the link, so that each glob meets each name once.
  struct followed {
    dev_t device;
    ino_t inode;
    char name[NAME_MAX + 1];
  } *followed;
  size_t links;
};

// A folder that is walked, and those above it.
struct above {
  const struct above *up;
  dev_t device;
  ino_t inode;
};

// As the globs of rules: `*` and `?` stop at a slash, `**` does not; and `/**/` is a single slash, too. Within: whether some name in the folder of the path would match.
static int matches(const char *glob, const char *path, int within) {
  for (; *glob != '\0'; glob++, path++) {
    if (*glob == '*') {
      int crosses = glob[1] == '*', is_whole = glob[-1] == '/';
      while (*glob == '*') glob++;
      if (crosses && is_whole && *glob == '/' && path[-1] == '/' && matches(glob + 1, path, within)) return 1;
      for (;; path++) {
        if (within && *path == '\0') return strchr(glob, '/') == NULL;
        if (matches(glob, path, within)) return 1;
        if (*path == '\0' || (*path == '/' && !crosses)) return 0;
      }
    }
    if (within && *path == '\0') return strchr(glob, '/') == NULL;
    if (*path == '\0' || (*glob == '?' ? *path == '/' : *glob != *path)) return 0;
  }
  return !within && *path == '\0';
}

static const char *name_of(int error) {
  const char *name = strerrorname_np(error);
  return name == NULL ? "an unknown error" : name;
}

// A name may hold anything but a slash: what would end a line, or say something to a terminal, is told by its number.
static void name_path(const char *path) {
  for (; *path != '\0'; path++) fprintf(found, (unsigned char)*path < 0x20 || *path == 0x7f ? "\\x%02x" : "%c", (unsigned char)*path);
}

static void leave(struct search *search, const char *path, const char *why) {
  if (search->why != NULL) return;
  search->why = why;
  strcpy(search->left, path);
}

// What this program lacks itself stops nobody else.
static int is_own_lack(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN; }

static void try_path(struct search *search, int (*run)(const char *path), const char *path) {
  errno = 0;
  if (run(path) >= 0) {
    if (search->opened++ < NAMED) name_path(path), fprintf(found, ": open\n");
    return;
  }
  int error = errno;
  if (is_own_lack(error)) {
    leave(search, path, name_of(error));
    return;
  }
  if (search->error == 0 || search->error == ENOENT) search->error = error;
  struct stat status;
  int is_absent = (error == ENOENT || error == ENOTDIR) && lstat(path, &status) != 0;
  if (!is_absent && search->shut++ < FEW) name_path(path), fprintf(found, ": %s\n", name_of(error));
}

static int is_above(const struct above *folder, const struct stat *status) {
  for (; folder != NULL; folder = folder->up)
    if (folder->device == status->st_dev && folder->inode == status->st_ino) return 1;
  return 0;
}

// Whether a link leads to a folder that is not above it and was not walked by that name: all that a walk needs to come to an end.
static int is_new_folder(struct search *search, const struct above *folder, const char *path, const char *name) {
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode) || is_above(folder, &status)) return 0;
  for (size_t index = 0; index < search->links; index++) {
    const struct followed *it = &search->followed[index];
    if (it->device == status.st_dev && it->inode == status.st_ino && strcmp(it->name, name) == 0) return 0;
  }
  struct followed *more = realloc(search->followed, (search->links + 1) * sizeof *more);
  if (more == NULL) return leave(search, path, name_of(ENOMEM)), 0;
  search->followed = more;
  more = &search->followed[search->links++];
  *more = (struct followed){.device = status.st_dev, .inode = status.st_ino};
  snprintf(more->name, sizeof more->name, "%s", name);
  return 1;
}

// From the part of the glob that names what is in the folder. A part without wildcards needs no list.
static void walk(struct search *search, const char *folder, const char *rest, int depth, const struct above *up) {
  size_t length = strcspn(rest, "/");
  char path[PATH_MAX], part[PATH_MAX];
  if (depth == 0 || snprintf(path, sizeof path, "%s/", folder) >= (int)sizeof path) {
    leave(search, folder, "is below more folders than are walked");
    return;
  }
  struct stat status;
  if (stat(path, &status) != 0) status = (struct stat){0};
  const struct above here = {.up = up, .device = status.st_dev, .inode = status.st_ino};
  if (strcspn(rest, "*?") >= length) {
    if (snprintf(path, sizeof path, "%s/%.*s", folder, (int)length, rest) >= (int)sizeof path) return;
    if (rest[length] == '\0') try_path(search, search->run, path);
    else walk(search, path, rest + length + 1, depth, &here);
    return;
  }
  if (search->make != NULL && matches(search->glob, path, 1)) try_path(search, search->make, path);
  DIR *entries = opendir(path);
  if (entries == NULL) {
    int error = errno;
    if (is_own_lack(error)) leave(search, path, name_of(error));
    else if (error == EACCES && access(path, X_OK) == 0) leave(search, path, "lists nothing and may be entered");
    if (error != ENOENT && error != ENOTDIR && search->closed++ < FEW)
      name_path(path), fprintf(found, ": not listed, %s\n", name_of(error));
    return;
  }
  const char *crossing = strstr(rest, "**");
  int crosses = crossing != NULL && crossing < rest + length;
  snprintf(part, sizeof part, "%.*s", (int)(rest + length - search->glob), search->glob);
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path) {
      leave(search, folder, "has names in it that make no path");
      continue;
    }
    if (matches(search->glob, path, 0)) try_path(search, search->run, path);
    int goes_on = crosses || (rest[length] == '/' && matches(part, path, 0));
    if (!goes_on) continue;
    int type = entry->d_type;
    if (type == DT_UNKNOWN && lstat(path, &status) == 0) type = IFTODT(status.st_mode);
    if (type != DT_DIR && (type != DT_LNK || !is_new_folder(search, &here, path, entry->d_name))) continue;
    walk(search, path, crosses ? rest : rest + length + 1, depth - 1, &here);
  }
  closedir(entries);
}

// How many there were in all, after the first few of each kind.
static void tell(const struct search *search) {
  if (search->opened + search->shut == 0) fprintf(found, "nothing matches in the sandbox");
  else fprintf(found, "%ld tried: %ld open, %ld shut", search->opened + search->shut, search->opened, search->shut);
  if (search->closed > 0) fprintf(found, "; folders that list nothing: %ld", search->closed);
}

static int try_all(const char *glob, int (*run)(const char *path), int (*make)(const char *folder)) {
  struct search search = {.glob = glob, .run = run, .make = make};
  if (*glob != '/' || strlen(glob) >= PATH_MAX) return errno = ENAMETOOLONG, -1;
  walk(&search, "", glob + 1, DEPTH, NULL);
  free(search.followed);
  if (search.opened == 0 && search.why != NULL)
    return name_path(search.left), fprintf(found, " %s: name what is in it", search.why), errno = 0, -1;
  tell(&search);
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

// Whether an owner may take the right to write, by setting the mode that is there.
static int own_mode(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) ? chmod(path, status.st_mode & 07777) : -1;
}

static int make_in(const char *folder) {
  if (access(folder, W_OK | X_OK) == 0) return 0;
  int error = errno;
  return own_mode(folder) == 0 ? 0 : (errno = error, -1);
}

// Whether a name can be taken away, and given to something else: the kernel looks whether before it sees that this is no folder.
static int replace_name(const char *path) {
  char folder[PATH_MAX];
  struct statx status;
  if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder) return errno = ENAMETOOLONG, -1;
  *(strrchr(folder, '/') + 1) = '\0';
  if (make_in(folder) < 0) return -1;
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &status) != 0) return errno == ENOENT ? 0 : -1;
  if (S_ISDIR(status.stx_mode) || (status.stx_attributes_mask & ~status.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)
    return errno = EBUSY, -1;
  return rmdir(path) < 0 && errno == ENOTDIR ? 0 : -1;
}

// Writes nothing: what can be opened or replaced, or a folder in which one may create. What is absent is created, and removed again.
static int write_path(const char *path) {
  struct stat status;
  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) return make_in(path);
  int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) unlink(path);
  }
  int error = errno, is_null = fd >= 0 && is_null_device(fd);
  if (fd < 0 && (own_mode(path) == 0 || replace_name(path) == 0)) return 0;
  if (fd >= 0) close(fd);
  return is_null ? (errno = ENODATA, -1) : (errno = error, fd);
}

// Starts it with nothing on its streams, and ends it as soon as it has started. What the kernel would execute if it only knew
// its format, execvp gives to a shell.
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
  return got == 0 || error == ENOEXEC ? 0 : (errno = error, -1);
}

static int read_any(int count, char **arguments) { return (void)count, try_all(arguments[0], read_path, NULL); }
static int write_any(int count, char **arguments) { return (void)count, try_all(arguments[0], write_path, make_in); }
static int exec_any(int count, char **arguments) { return (void)count, try_all(arguments[0], exec_path, NULL); }

const struct attempt stated_attempts[] = {
    {"read-any", 1, read_any},
    {"write-any", 1, write_any},
    {"exec-any", 1, exec_any},
    {NULL, 0, NULL},
};
