// shop_server SOCKET NAME: exports Shop under NAME at the nameserver with that socket. Knows nothing of Sun RPC.
// Answers as sun_server.c does. Prints a line, and serves until its parent exits.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>

#include "shop.server.h"

namespace {

class ShopService {
 public:
  void Null(lrpc::CallContext& /*context*/) {}
  lrpc::Result<Shop::IntegersResults> Integers(lrpc::CallContext& /*context*/, std::int8_t a, std::uint8_t b,
                                               std::int16_t c, std::uint16_t d, std::int32_t e, std::uint32_t f,
                                               std::int64_t g, std::uint64_t h) {
    return Shop::IntegersResults{.a2 = static_cast<std::int8_t>(~a),
                                 .b2 = static_cast<std::uint8_t>(~b),
                                 .c2 = static_cast<std::int16_t>(~c),
                                 .d2 = static_cast<std::uint16_t>(~d),
                                 .e2 = ~e,
                                 .f2 = ~f,
                                 .g2 = ~g,
                                 .h2 = ~h};
  }
  lrpc::Result<Shop::RealsResults> Reals(lrpc::CallContext& /*context*/, float a, double b, bool c, std::byte d) {
    return Shop::RealsResults{.a2 = -a, .b2 = -b, .c2 = !c, .d2 = ~d};
  }
  void Turn(lrpc::CallContext& /*context*/, Shop::Item& item) {
    std::string name = item.name.str();
    std::ranges::reverse(name);
    item.name = Shop::Label::cut(name);
    item.colour = item.colour == Shop::Colour::Red     ? Shop::Colour::Green
                  : item.colour == Shop::Colour::Green ? Shop::Colour::Blue
                                                       : Shop::Colour::Red;
    std::ranges::reverse(item.corners);
    for (Shop::Point& one : item.corners) one = {-one.x, -one.y};
    for (bool& one : item.flags) one = !one;
    std::ranges::reverse(item.block);
    item.share = static_cast<Shop::Percent>(100 - item.share);
    item.code = item.code == Shop::Wide::First ? Shop::Wide::Last : Shop::Wide::First;
  }
  lrpc::Result<lrpc::String<4000>> Join(lrpc::CallContext& /*context*/, const lrpc::String<2000>& first,
                                        const lrpc::String<2000>& second) {
    return lrpc::String<4000>::cut(first.str() + second.str());
  }
  void Fill(lrpc::CallContext& /*context*/, std::uint32_t count, std::uint8_t value, lrpc::Buffer& data) {
    if (data.resize(count)) std::ranges::fill(data.contents(), static_cast<std::byte>(value));
  }
  void Reverse(lrpc::CallContext& /*context*/, lrpc::Buffer& data) { std::ranges::reverse(data.contents()); }
  lrpc::Result<std::uint32_t, Shop::TooMuch, Shop::Closed> Buy(lrpc::CallContext& /*context*/, std::uint32_t count) {
    if (count == 13) return lrpc::raise(Shop::Closed{});
    if (count > 100) return lrpc::raise(Shop::TooMuch{.limit = 100, .what = lrpc::String<16>::cut("bread")});
    return 3 * count;
  }
  lrpc::Result<Shop::Percent> Rate(lrpc::CallContext& /*context*/, std::uint32_t value) {
    return static_cast<Shop::Percent>(value);
  }
  void Note(lrpc::CallContext& /*context*/, std::uint32_t what) { noted_ = what; }
  lrpc::Result<std::uint32_t> Noted(lrpc::CallContext& /*context*/) { return noted_.load(); }
  lrpc::Result<bool> Fail(lrpc::CallContext& /*context*/, Shop::Failure /*how*/) { return true; }

 private:
  std::atomic<std::uint32_t> noted_{0};
};

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 3) return 2;
  lrpc::Server server(lrpc::ServerOptions{.nameserver = argv[1]});
  ShopService service;
  if (const auto exported = Shop::export_to(server, argv[2], service); !exported) {
    std::fprintf(stderr, "export of %s: %s\n", argv[2], exported.error().message().c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}
