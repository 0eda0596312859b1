// The smallest server there can be: answers every request that has an id, so that what is measured is what lies around it.
#include <stdio.h>
#include <string.h>

static const char introduction[] = "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
                                   "\"serverInfo\":{\"name\":\"tiny\",\"version\":\"1.0.0\"}}";
static const char tools[] = "{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}";
static const char said[] = "{\"content\":[{\"type\":\"text\",\"text\":\"0123456789abcdef0123456789abcdef\"}]}";

int main(void) {
    static char line[65536];
    while (fgets(line, sizeof line, stdin)) {
        const char *id = strstr(line, "\"id\":");
        if (!id || !strstr(line, "\"method\":"))
            continue;
        id += strlen("\"id\":");
        // A text's end is its quote, a number's whatever is no part of it
        size_t length = *id == '"' ? strcspn(id + 1, "\"") + 2 : strcspn(id, ",} \n");
        const char *result = strstr(line, "\"initialize\"")   ? introduction
                             : strstr(line, "\"tools/list\"") ? tools
                             : strstr(line, "\"tools/call\"") ? said
                                                              : NULL;
        if (result)
            printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}\n", (int)length, id, result);
        else
            printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-32601,\"message\":\"no such method\"}}\n",
                   (int)length, id);
        fflush(stdout);
    }
    return 0;
}
