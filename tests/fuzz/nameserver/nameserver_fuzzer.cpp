// Attacks the nameserver's core over its sockets: valid, changed and random messages, with descriptors of several
// kinds, over several connections of several users, in any order and at any time. Meanwhile and afterwards an honest
// client can import an honest server's name, new connections are served, no log line can be mistaken for two, and no
// descriptor is left.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "world.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace lrpc::nameserver {
namespace {

constexpr int kMostActions = 100;  ///< Of one input.

std::string directory;  ///< Of the socket.

void run(Input input) {
  const std::size_t before = open_descriptors();
  {
    World world(directory);
    for (int i = 0; i < kMostActions && input.more(); ++i) world.act(input);
    world.finish();
  }
  require(open_descriptors() == before, "no descriptor is left of the nameserver");
}

}  // namespace
}  // namespace lrpc::nameserver

int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  std::string pattern = "/tmp/lrpc-fuzz-XXXXXX";
  lrpc::fuzz::require(::mkdtemp(pattern.data()) != nullptr, "there is a place for the socket");
  lrpc::nameserver::directory = pattern;
  std::atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(lrpc::nameserver::directory, ignored);
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::nameserver::run({data, size});
  return 0;
}
