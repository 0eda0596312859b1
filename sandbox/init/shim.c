// The stdio shim, which an MCP host runs instead of the server: attaches, relays, ends as the server ended.
#include "shim.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "init.h"
#include "json.h"

// What we speak, as src/rpc/protocol.ts has it; a test compares. The daemon refuses what it does not speak.
#define PROTOCOL "sallyport/1"

// A daemon that is there, and ends before it answers, is followed by the next one after a pause that doubles: 20 ms, 40 … 2560.
enum { ATTACH_MS = 60000, RESULT_MS = 2000, FIRST_PAUSE_MS = 20, LAST_PAUSE_MS = 2560 };

#define USAGE "usage: sallyport-stdio NAME [--socket PATH] [--project FOLDER] [--no-autostart]"

// A path comes from outside: a newline or an escape sequence in it must not forge a line on the host's terminal.
static void blank_controls(char *line) {
  for (; *line != '\0'; line++)
    if ((unsigned char)*line < 0x20 || *line == 0x7f) *line = '?';
}

void give_up(int status, const char *what, const char *detail) {
  char line[2048];
  snprintf(line, sizeof line - 1, "sallyport: %s%s", what, detail);
  blank_controls(line);
  strcat(line, "\n");
  write_all(STDERR_FILENO, line, strlen(line));
  _exit(status);
}

// A host that ends us wants us gone: the kernel closes the socket, and the daemon stops the server.
static void leave(int number) { _exit(EXIT_SIGNAL + number); }

static void set_signals(void) {
  reset_signals();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, leave);
  signal(SIGINT, leave);
  signal(SIGHUP, leave);
}

// A standard stream that the host left closed would become the number of our socket.
static void fill_standard_streams(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) _exit(STATUS_FAILED);
}

static bool is_name(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  size_t length = strspn(text, letters);
  return length > 0 && length <= NAME_MAX_BYTES && text[length] == '\0';
}

struct options {
  const char *server, *socket, *project;
  bool may_start;
};

static struct options read_options(int argc, char **argv) {
  struct options options = {.may_start = true};
  for (int index = 0; index < argc; index++) {
    if (strcmp(argv[index], "--no-autostart") == 0)
      options.may_start = false;
    else if (strcmp(argv[index], "--socket") == 0 && index + 1 < argc)
      options.socket = argv[++index];
    else if (strcmp(argv[index], "--project") == 0 && index + 1 < argc)
      options.project = argv[++index];
    else if (argv[index][0] != '-' && options.server == NULL)
      options.server = argv[index];
    else
      give_up(STATUS_USAGE, USAGE "; not understood: ", argv[index]);
  }
  if (options.server == NULL)
    give_up(STATUS_USAGE, USAGE, "");
  if (!is_name(options.server))
    give_up(STATUS_USAGE, "a server's name is 1 to 128 of A-Z a-z 0-9 _ . -, got: ", options.server);
  return options;
}

// Ends where the daemon refused, with the status that the command line has for that code.
static void expect_result(struct json answer, struct json *result) {
  struct json error, data, value;
  char code[64] = "", named[68] = "", message[1024] = "the daemon refused without a reason";
  if (json_member(answer, "error", &error)) {
    if (json_member(error, "message", &value)) json_text(value, message, sizeof message);
    if (json_member(error, "data", &data) && json_member(data, "code", &value))
      json_text(value, code, sizeof code);
    if (code[0] != '\0') snprintf(named, sizeof named, " (%s)", code); // by which docs/errors.md is looked up
    give_up(status_of_code(code), message, named);
  }
  if (!json_member(answer, "result", result))
    give_up(STATUS_FAILED, "the daemon's answer is not JSON-RPC", "");
}

static struct json answer_in(const struct buffer *buffer, size_t line_bytes) {
  return (struct json){.at = buffer->bytes, .end = buffer->bytes + line_bytes};
}

// The socket of the session, and its answer. What a daemon began for us without an answer ended with our connection to it.
static int attach(const char *path, bool may_start, const char *params, struct buffer *down, size_t *line) {
  for (long pause_ms = FIRST_PAUSE_MS;; pause_ms *= 2) {
    int socket = dial(path, may_start);
    if (ask(socket, "session/attach", params, down, ATTACH_MS, line)) return socket;
    close(socket);
    if (!may_start || pause_ms > LAST_PAUSE_MS)
      give_up(STATUS_UNAVAILABLE, "the daemon closed the connection without an answer", "");
    down->start = down->end = 0;
    nanosleep(&(struct timespec){.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000L}, NULL);
  }
}

int stdio_main(int argc, char **argv) {
  static struct buffer down;
  static char params[PARAMS_MAX_BYTES];
  struct json result, value;
  char session[NAME_MAX_BYTES + 1];
  size_t line;
  long status;

  // 1. What the host gave us.
  set_signals();
  fill_standard_streams();
  struct options options = read_options(argc, argv);
  const char *project = project_member(options.project);

  // 2. The daemon; a socket that was named is somebody's own business, so only the default one is brought up.
  const char *path = options.socket != NULL ? options.socket : socket_path();
  bool may_start = options.may_start && options.socket == NULL;

  // 3. From the answer's newline on this is the MCP session; what came with the line is its beginning.
  snprintf(params, sizeof params, "{\"server\":\"%s\",\"protocol\":\"" PROTOCOL "\"%s}", options.server, project);
  int socket = attach(path, may_start, params, &down, &line);
  expect_result(answer_in(&down, line), &result);
  if (!json_member(result, "session", &value) || !json_text(value, session, sizeof session) ||
      !is_name(session))
    give_up(STATUS_FAILED, "the daemon named no session", "");
  down.start = line + 1;

  // 4. Bytes, both ways, until the daemon ends the session.
  let_go_of_code();
  relay(socket, &down);
  close(socket);

  // 5. How the server ended is asked on a connection of its own, since the first one carried nothing but MCP.
  down.start = down.end = 0;
  snprintf(params, sizeof params, "{\"session\":\"%s\"}", session);
  socket = connect_to(path);
  if (socket < 0 || !ask(socket, "session/result", params, &down, RESULT_MS, &line))
    give_up(STATUS_UNAVAILABLE, "the session ended, and no daemon says how its server did", "");
  expect_result(answer_in(&down, line), &result);
  if (!json_member(result, "status", &value) || !json_integer(value, &status) || status < 0 || status > 255)
    give_up(STATUS_FAILED, "the daemon gave no exit status for the session", "");
  return (int)status;
}
