// Covers what /proc tells of the host, from outside: a child of the launcher's enters the sandbox for that while PID 1, which is
// all that there is in it, waits.
//
// The sandbox tool would read the whole table of mounts for each cover, which was most of a launch. PID 1 would need rights over
// mounts, and a filter that lets it use them.
#include "covers.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init.h"
#include "outer.h"

static const unsigned long closed = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

// A tool that is killed as it starts leaves a child that waits for it for ever, and the daemon may be gone, too. Until the server
// runs nothing is in the launcher's group but the tool, that child and we.
static _Noreturn void end_group(pid_t launcher) {
  if (getpgrp() == launcher) kill(0, SIGKILL);
  _exit(EXIT_SETUP);
}

static pid_t leader;

static void hear_the_end(int number) {
  (void)number;
  if (getppid() != leader) end_group(leader);
}

// By the one signal that wakes who was stopped, too. Again after each change of rights, with which the kernel forgets it.
static void end_with(pid_t launcher) {
  leader = launcher;
  signal(SIGCONT, hear_the_end);
  if (prctl(PR_SET_PDEATHSIG, SIGCONT) != 0) _exit(EXIT_SETUP);
  hear_the_end(SIGCONT);
}

// False where PID 1 ended before it asked: then there is nobody to answer.
static bool take_namespaces(int peer, int namespaces[NAMESPACES]) {
  char byte;
  union {
    char bytes[CMSG_SPACE(NAMESPACES * sizeof(int))];
    struct cmsghdr head;
  } control;
  struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
  ssize_t got;
  do {
    got = recvmsg(peer, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const struct cmsghdr *head = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
  if (head == NULL || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(NAMESPACES * sizeof(int)))
    return false;
  memcpy(namespaces, CMSG_DATA(head), NAMESPACES * sizeof(int));
  return true;
}

// Who made a user namespace has every right in it from outside, and that is the user who we are by now.
static const char *enter(const int namespaces[NAMESPACES]) {
  if (setns(namespaces[0], CLONE_NEWUSER) != 0) return "user namespace";
  return setns(namespaces[1], CLONE_NEWNS) == 0 ? NULL : "mount namespace";
}

// A device that opens for nobody, or a folder that stays empty.
static bool cover_first(const struct cover *cover) {
  if (cover->is_folder) return mount("tmpfs", cover->path, "tmpfs", closed, "size=4096,nr_inodes=2,mode=0555") == 0;
  return mount("/dev/null", cover->path, NULL, MS_BIND, NULL) == 0 &&
         mount(NULL, cover->path, NULL, MS_BIND | MS_REMOUNT | closed, NULL) == 0;
}

// Each further one shows the first of its kind, which brings along what may not be done with it.
static const char *cover_all(const struct launch *launch) {
  const char *first[2] = {NULL, NULL};
  for (size_t index = 0; index < launch->cover_count; index++) {
    const struct cover *cover = &launch->covers[index];
    const char **known = &first[cover->is_folder];
    bool is_covered = *known == NULL ? cover_first(cover) : mount(*known, cover->path, NULL, MS_BIND, NULL) == 0;
    if (!is_covered) return cover->path;
    if (*known == NULL) *known = cover->path;
  }
  return NULL;
}

static _Noreturn void serve(int peer, pid_t launcher, const struct launch *launch) {
  int namespaces[NAMESPACES];
  struct covered answer = {.error = 0};
  end_with(launcher);
  // Nothing that is the sandbox's, or the daemon's end of it would never come.
  if (dup2(peer, STDIN_FILENO) < 0) _exit(EXIT_SETUP);
  close_from(STDIN_FILENO + 1);
  if (!take_namespaces(STDIN_FILENO, namespaces)) _exit(EXIT_SETUP);
  const char *failed = enter(namespaces);
  if (failed == NULL) {
    end_with(launcher);
    failed = cover_all(launch);
  }
  if (failed != NULL) {
    answer.error = (uint32_t)errno;
    snprintf(answer.object, sizeof answer.object, "%s", failed);
  }
  (void)send(STDIN_FILENO, &answer, sizeof answer, MSG_NOSIGNAL);
  _exit(0);
}

void start_covers(const struct launch *launch) {
  int ends[2];
  pid_t launcher = getpid();
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) die("covers", "socket", errno);
  pid_t child = fork();
  if (child < 0) die("covers", "fork", errno);
  if (child == 0) {
    close(ends[0]);
    serve(ends[1], launcher, launch);
  }
  close(ends[1]);
  // PID 1 has it by that number, and so the tool on the way there.
  if (ends[0] == FD_COVERS ? fcntl(FD_COVERS, F_SETFD, 0) != 0 : dup2(ends[0], FD_COVERS) < 0)
    die("covers", "socket", errno);
}
