/* Parts of the plugin qkv_local: ranks on one machine, connected by Unix sockets. */
#ifndef QKV_PLUGINS_LOCAL_H
#define QKV_PLUGINS_LOCAL_H

#include <stddef.h>
#include <stdint.h>

#define MOST_RANKS 256
#define MAGIC 0x6c766b71u /* "qkvl" */

/* Two connections for each pair of ranks: one for tag 0, which never waits for the other. */
enum { WATCH, DATA, CHANNELS };

struct peers {
  int rank, size;
  int socket[MOST_RANKS][CHANNELS]; /* -1: none */
};

/* Connects this rank with all others, as the environment says. Returns 0, or -1 with an error. */
int connect_peers(struct peers *peers);

/* Reads a number of the environment. Without it, sets `otherwise`; less than `least`: it must be there. */
int read_number(const char *name, int least, int most, int otherwise, int *value);

/* A link with a delay and a bandwidth, for the messages that this rank sends. `read_link` reads the environment. */
int read_link(void);
int64_t microseconds(void);
int64_t start_on_link(int tag); /* returns when a message that is sent now may begin to move */
size_t room_on_link(size_t n);  /* returns how many of n bytes may move now */
void use_link(size_t n);

/* Records the last error, formatted as by printf, and returns -1. `lost` is the rank that it is about, or -1. */
int set_error(int lost, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern int lost_rank;

/* One direction of one connection: requests in the order in which they were made. */
struct request {
  int64_t number;
  char *bytes;
  size_t size, moved; /* bytes of the message, and those that were sent or received */
  int64_t begin;      /* time before which it is not sent */
  int tag;
  struct request *next;
};

struct header {
  uint32_t magic;
  int32_t tag;
  uint64_t size;
};

struct queue {
  struct request *first, *last;
  struct header header; /* of the first message */
  size_t moved;         /* bytes of that header */
};

/* Requests are taken from a list of unused ones, which grows by many at a time. `new_request` returns NULL if there is no
 * memory. */
struct request *new_request(void);
void end_request(struct request *request);

void append(struct queue *queue, struct request *request);
void drop_all(struct queue *queue);

/* Move as many bytes as the socket takes or has. `ended` takes each request that ends.
 * Return 0, or -1 with an error, after which the connection is unusable. */
typedef void (*ended_function)(struct request *request);
int advance_sends(int socket, struct queue *queue, int peer, ended_function ended);
int advance_receives(int socket, struct queue *queue, int peer, ended_function ended);

#endif
