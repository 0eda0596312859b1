// Starts a program as little as can be, again and again, and says how long each took, ms: until its first byte at a socket, or to its end.
//   first-byte ROUNDS SOCKET PROGRAM ARGS...     first-byte ROUNDS - PROGRAM ARGS...
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) errx(1, "%s: too long", path);
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 8) != 0)
    err(1, "%s", path);
  return fd;
}

int main(int argc, char **argv) {
  if (argc < 4) errx(7, "usage: first-byte ROUNDS SOCKET|- PROGRAM ARGS...");
  int listener = strcmp(argv[2], "-") == 0 ? -1 : listen_at(argv[2]);
  for (long round = strtol(argv[1], NULL, 10); round > 0; round--) {
    char *environment[] = {NULL}, byte;
    // A host keeps the other end of its server's input open.
    int input[2], status;
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe2(input, O_CLOEXEC) != 0) err(1, "pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    double began = now_ms();
    if (posix_spawn(&child, argv[3], &actions, NULL, argv + 3, environment) != 0) errx(1, "%s: not started", argv[3]);
    int peer = -1;
    if (listener < 0)
      waitpid(child, &status, 0);
    else if ((peer = accept(listener, NULL, NULL)) < 0 || read(peer, &byte, 1) != 1)
      err(1, "first byte");
    printf("%.4f\n", now_ms() - began);
    if (listener >= 0) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      close(peer);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(input[1]);
  }
  return 0;
}
