// Hosts with MCP sessions over a daemon's socket, all in one process whose clock is exact and whose cost is small.
// Run: hosts SOCKET. On stdin, one line each; the answers on stdout end with a line `done` (or `failed WHY`):
//   up N            attaches and introduces sessions until there are N; a line `launch MS` for each
//   call RATE SEC   calls at so many a second over all sessions, for so long: a line `DUE_US TAKEN_US LATE_US OK` for each call
// Calls are due at moments that chance gives (a Poisson process from a fixed seed), whatever is answered meanwhile, and what a
// call took is counted from the moment at which it was due: a daemon that holds everybody up for a second is seen to do so.
// LATE_US is how late this process itself was to send it. Moments are of the monotonic clock.
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { most_sessions = 1000, line_bytes = 65536, answer_ms = 30000, linger_us = 10000000 };

struct session {
    size_t held;
    char line[line_bytes];
};
struct call {
    long long due, late, taken; // taken: -1 until it is answered
    int ok;
};

static struct session *sessions[most_sessions];
static struct pollfd polled[most_sessions];
static int count;
static struct call *calls;
static long first_id, next_id = 1, answered;
static const char *socket_path;

static long long now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static int fail(const char *what, ...) {
    va_list arguments;
    va_start(arguments, what);
    printf("failed ");
    vprintf(what, arguments);
    printf("\n");
    va_end(arguments);
    return -1;
}

static int say(int fd, const char *line) {
    size_t length = strlen(line);
    // A daemon that leaves a line unread blocks this host, whose next calls are late and counted as that
    return send(fd, line, length, MSG_NOSIGNAL) == (ssize_t)length ? 0 : fail("send: %s", strerror(errno));
}

// Whether the line answers the id; -1 where it is an error.
static int answers(const char *line, long id) {
    const char *at = strstr(line, "\"id\":");
    if (!at || atol(at + strlen("\"id\":")) != id)
        return 0;
    return strstr(line, "\"error\":{") ? -1 : 1;
}

// Sends a request and waits for its answer, while nothing else is under way on the connection.
static int ask(int index, const char *method, const char *params) {
    char line[512];
    struct session *session = sessions[index];
    long id = next_id++;
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"%s\",\"params\":%s}\n", id, method, params);
    if (say(polled[index].fd, line))
        return -1;
    for (;;) {
        char *end = memchr(session->line, '\n', session->held);
        if (end) {
            *end = 0;
            int is_answer = answers(session->line, id);
            if (is_answer < 0)
                return fail("%s: %s", method, session->line);
            size_t used = (size_t)(end - session->line) + 1;
            session->held -= used;
            memmove(session->line, session->line + used, session->held);
            if (is_answer)
                return 0;
            continue;
        }
        if (poll(&polled[index], 1, answer_ms) != 1)
            return fail("%s was not answered within %d ms", method, answer_ms);
        ssize_t got = read(polled[index].fd, session->line + session->held, line_bytes - session->held);
        if (got <= 0)
            return fail("%s: the daemon hung up", method);
        session->held += (size_t)got;
    }
}

static int attach(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, socket_path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        return fail("connect: %s", strerror(errno));
    int index = count;
    char server[64];
    snprintf(server, sizeof server, "{\"server\":\"tiny%d\"}", index);
    sessions[index] = calloc(1, sizeof(struct session));
    polled[index] = (struct pollfd){.fd = fd, .events = POLLIN};
    if (ask(index, "sallyport/hello", "{\"protocol\":\"sallyport/1\"}") || ask(index, "session/attach", server))
        return -1;
    const char *who = "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"hosts\",\"version\":\"1\"}}";
    if (ask(index, "initialize", who) || say(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"))
        return -1;
    if (ask(index, "tools/list", "{}"))
        return -1;
    count++;
    return 0;
}

static void take_answers(int index, long last_id) {
    struct session *session = sessions[index];
    ssize_t got = read(polled[index].fd, session->line + session->held, line_bytes - session->held - 1);
    if (got <= 0) {
        polled[index].events = 0; // what was asked there stays unanswered, which counts as an error
        polled[index].fd = -1 - polled[index].fd;
        return;
    }
    long long now = now_us();
    session->held += (size_t)got;
    char *from = session->line, *end;
    while ((end = memchr(from, '\n', session->held - (size_t)(from - session->line)))) {
        *end = 0;
        const char *at = strstr(from, "\"id\":");
        long id = at ? atol(at + strlen("\"id\":")) : -1;
        if (id >= first_id && id < last_id && calls[id - first_id].taken < 0) {
            struct call *call = &calls[id - first_id];
            call->taken = now - call->due;
            call->ok = !strstr(from, "\"error\":{") && strstr(from, "0123456789abcdef0123456789abcdef");
            answered++;
        }
        from = end + 1;
    }
    session->held -= (size_t)(from - session->line);
    memmove(session->line, from, session->held);
}

static int call_for(double rate, double seconds) {
    long room = (long)(rate * seconds * 1.5) + 1000, sent = 0;
    calls = calloc((size_t)room, sizeof *calls);
    first_id = next_id;
    answered = 0;
    double due = (double)now_us(), end = due + seconds * 1e6;
    due += -log(1 - drand48()) * 1e6 / rate;
    while (due < end || (answered < sent && now_us() < end + linger_us)) {
        long long now = now_us();
        for (; due < end && due <= (double)now && sent < room; due += -log(1 - drand48()) * 1e6 / rate) {
            char line[256];
            int index = (int)(drand48() * count);
            struct call *call = &calls[sent++];
            *call = (struct call){.due = (long long)due, .late = now_us() - (long long)due, .taken = -1};
            snprintf(line, sizeof line,
                     "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{"
                     "\"message\":\"0123456789abcdef0123456789abcdef\"}}}\n",
                     next_id++);
            if (polled[index].fd >= 0)
                send(polled[index].fd, line, strlen(line), MSG_NOSIGNAL);
        }
        double wait = due < end ? due - (double)now_us() : 100000;
        struct timespec until = {.tv_sec = 0, .tv_nsec = 0};
        if (wait > 0) {
            until.tv_sec = (time_t)(wait / 1e6);
            until.tv_nsec = (long)(fmod(wait, 1e6) * 1000);
        }
        if (ppoll(polled, (nfds_t)count, &until, NULL) > 0)
            for (int index = 0; index < count; index++)
                if (polled[index].revents)
                    take_answers(index, next_id);
    }
    for (long n = 0; n < sent; n++)
        printf("%lld %lld %lld %d\n", calls[n].due, calls[n].taken, calls[n].late, calls[n].ok);
    free(calls);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "hosts SOCKET\n");
        return 7;
    }
    socket_path = argv[1];
    srand48(7);
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        int wanted, status = 0;
        double rate, seconds;
        if (sscanf(line, "up %d", &wanted) == 1 && wanted <= most_sessions)
            while (count < wanted && !status) {
                long long began = now_us();
                if (!(status = attach()))
                    printf("launch %.1f\n", (double)(now_us() - began) / 1000);
            }
        else if (sscanf(line, "call %lf %lf", &rate, &seconds) == 2 && count > 0 && rate > 0)
            status = call_for(rate, seconds);
        else
            status = fail("not understood: %s", line);
        if (!status)
            printf("done\n");
        fflush(stdout);
    }
    return 0;
}
