// Calls Hello and checks what comes back.
#include <cstdio>

#include "hello.client.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto hello = Hello::Client::import("hello", {.nameserver = argv[1]});
  if (!hello) {
    std::fprintf(stderr, "import: %s\n", hello.error().message().c_str());
    return 1;
  }
  const auto sum = hello->Add(2, 3);
  const auto length = hello->Greet("world");
  const auto nobody = hello->Greet("nobody");
  if (!sum || *sum != 5 || !length || *length != 13) return 1;
  return !nobody && nobody.raised<Hello::Unknown>() != nullptr ? 0 : 1;
}
