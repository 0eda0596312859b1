// sallyport-probes: tries what a server must not be able to do, as whoever talks to it asks, one line for each.
//
//   sallyport-probes FILE, or its stdin    NAME \t ARGUMENT \t ... \n
//   stdout     {"outcome":"open","ms":0.2,"text":"..."} \n    outcome: open, an errno's name, killed, late, no-effect or unknown
//
// With a FILE, it stays after the last line until its stdin ends: what an attempt left running is there as long.
// Each attempt has a process of its own: what it opens, changes or dies of is gone when its line is written.
#include "probes.h"

#include <errno.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 16384 };

FILE *found;

static const struct attempt *find(const char *name) {
  const struct attempt *tables[] = {file_attempts, call_attempts, network_attempts, door_attempts, process_attempts, resource_attempts, stated_attempts};
  for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
    for (const struct attempt *it = tables[table]; it->name != NULL; it++)
      if (strcmp(it->name, name) == 0) return it;
  return NULL;
}

static void write_escaped(const char *text, size_t length) {
  for (size_t index = 0; index < length; index++) {
    unsigned char byte = (unsigned char)text[index];
    if (byte < 0x20 || byte == '"' || byte == '\\' || byte >= 0x7f)
      printf("\\u%04x", byte);
    else
      putchar(byte);
  }
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double started_ms;

static void answer(const char *outcome, const char *text, size_t length) {
  printf("{\"outcome\":\"%s\",\"ms\":%.3f,\"text\":\"", outcome, now_ms() - started_ms);
  write_escaped(text, length);
  puts("\"}");
  fflush(stdout);
}

static const char *outcome_of(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? "late" : "killed";
  int code = WEXITSTATUS(status);
  const char *name = code == NO_EFFECT ? "no-effect" : strerrorname_np(code);
  return code == 0 ? "open" : name == NULL ? "no-effect" : name;
}

static void run(const struct attempt *attempt, int count, char **arguments) {
  static char text[TEXT_BYTES];
  int ends[2];
  pid_t pid = pipe(ends) == 0 ? fork() : -1;
  if (pid < 0) {
    answer("no-effect", "could not fork", 14);
    return;
  }
  if (pid == 0) {
    close(ends[0]);
    found = fdopen(ends[1], "w");
    alarm(PATIENCE_S);
    errno = 0;
    int result = attempt->run(count, arguments);
    int code = result >= 0 ? 0 : errno == 0 ? NO_EFFECT : errno;
    fclose(found);
    _exit(code);
  }
  close(ends[1]);
  size_t length = 0;
  char spare[4096];
  for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR);) {
    size_t room = sizeof text - length;
    got = read(ends[0], room > 0 ? text + length : spare, room > 0 ? room : sizeof spare);
    if (got > 0 && room > 0) length += (size_t)got;
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  const char *outcome = outcome_of(status);
  if (strcmp(outcome, "late") == 0) length = (size_t)sprintf(text, "nothing came of it for %d s", PATIENCE_S);
  answer(outcome, text, length);
}

// Bytes on stdout, be it a socket or a pipe, that nobody has taken yet; -1 where that is not to be known.
static int untaken(void) {
  int bytes = 0;
  return ioctl(STDOUT_FILENO, SIOCOUTQ, &bytes) == 0 || ioctl(STDOUT_FILENO, FIONREAD, &bytes) == 0 ? bytes : -1;
}

// A space before an answer says nothing. The second is taken only after all that was there to be done when the first was.
int await_turn(void) {
  const struct timespec moment = {.tv_nsec = 1000000}, long_enough = {.tv_sec = 3};
  for (int turns = 0; turns < 2; turns++) {
    if (write(STDOUT_FILENO, " ", 1) != 1) return errno = 0, -1;
    for (int left; (left = untaken()) != 0; nanosleep(&moment, NULL))
      if (left < 0) return nanosleep(&long_enough, NULL); // gVisor does not say
  }
  return 0;
}

// The relay is the last process of that name that was started before this one; PID 1's threads have numbers between the two.
static int relay_pid(void) {
  int pid = getpid() - 1;
  for (char path[64], name[16]; pid > 1; pid--) {
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) continue;
    bool is_relay = fgets(name, sizeof name, file) != NULL && strcmp(name, "egress\n") == 0;
    fclose(file);
    if (is_relay) break;
  }
  return pid;
}

// What people name stands for nothing else.
static bool is_stated(const char *name) {
  for (const struct attempt *it = stated_attempts; it->name != NULL; it++)
    if (strcmp(it->name, name) == 0) return true;
  return false;
}

// `{main}` in an argument is this program's own pid: outside of a sandbox it stands in for PID 1, being of the same user.
// `{relay}` is the relay beside this program, which has the server's place.
static char *settled(char *argument) {
  static char room[ARGUMENTS + 1][LINE_BYTES];
  static int next;
  char *at = strchr(argument, '{'), *settled = room[next++ % (ARGUMENTS + 1)];
  bool is_main = at != NULL && strncmp(at, "{main}", 6) == 0;
  if (!is_main && (at == NULL || strncmp(at, "{relay}", 7) != 0)) return argument;
  int pid = is_main ? getpid() : relay_pid();
  snprintf(settled, LINE_BYTES, "%.*s%d%s", (int)(at - argument), argument, pid, strchr(at, '}') + 1);
  return settled;
}

// `stay`: from now on this program ends neither with its stdin nor by being asked to, and says so each time that it is asked.
static volatile sig_atomic_t stays;
static void refuse_end(int number) {
  static const char word[] = "asked to end, and goes on\n";
  (void)number;
  if (write(STDERR_FILENO, word, sizeof word - 1) < 0) return;
}
static void stay(int number) {
  stays = number;
  signal(SIGTERM, refuse_end);
}

// `let-go`: nothing is written to stderr any more.
static void let_go(int number) {
  (void)number;
  close(STDERR_FILENO);
}

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[1], "--args") == 0) become_tool(argv);
  if (argc > 3 && strcmp(argv[1], "--before") == 0) become_launcher(argv);
  if (argc > 3 && strcmp(argv[1], "without") == 0) become_first(argv);
  note_descriptors();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGUSR1, stay);
  signal(SIGUSR2, let_go);
  static char line[LINE_BYTES];
  FILE *lines = argc > 1 ? fopen(argv[1], "re") : stdin;
  if (lines == NULL) return perror(argv[1]), 1;
  while (fgets(line, sizeof line, lines) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char *rest = line, *words[ARGUMENTS + 1];
    int count = 0;
    for (char *word; count <= ARGUMENTS && (word = strsep(&rest, "\t")) != NULL; count++)
      words[count] = count > 0 && is_stated(words[0]) ? word : settled(word);
    // Whoever hears of no answer knows by this that it came to trying.
    putchar(' ');
    fflush(stdout);
    started_ms = now_ms();
    const struct attempt *attempt = find(words[0]);
    if (attempt == NULL || count - 1 < attempt->arguments)
      answer("unknown", words[0], strlen(words[0]));
    else
      run(attempt, count - 1, words + 1);
  }
  while (lines != stdin && (getchar() != EOF || stays))
    if (feof(stdin)) pause();
}
