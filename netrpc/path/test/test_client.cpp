// A client that holds two handles at a server on another host until it is killed.
#include <unistd.h>

#include <cstdio>

#include "conformance.client.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto client = Conformance::Client::import(argv[2], {.nameserver = argv[1]});
  if (!client || !client->Open(1) || !client->Open(2)) return 1;
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}
