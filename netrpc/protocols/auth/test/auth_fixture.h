// Two simulated hosts with AUTH, and an attacker on the wire (Tap).
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "netrpc/protocols/auth/auth.h"
#include "netrpc/protocols/auth/keys.h"
#include "netrpc/protocols/auth/protocol.h"
#include "netrpc/protocols/auth/test/key_file.h"
#include "netrpc/protocols/auth/test/tap.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::auth {

using namespace std::chrono_literals;

inline constexpr auto kChacha = static_cast<Ciphers>(Cipher::chacha20_poly1305);
inline constexpr auto kAes = static_cast<Ciphers>(Cipher::aes256_gcm);

/// The layers on one host of the test.
struct Stack {
  Tap* tap = nullptr;
  Protocol* auth = nullptr;
  SinkProtocol* sink = nullptr;
};

class Auth : public ::testing::Test {
 protected:
  /// Starts two hosts with the given key files on an Ethernet, which pads frames.
  void start(const std::string& keys_0, const std::string& keys_1, SimOptions sim = {}, Options options = {}) {
    files.clear();
    files.push_back(std::make_unique<KeyFile>(keys_0));
    files.push_back(std::make_unique<KeyFile>(keys_1));
    net = std::make_unique<SimHosts>(2, 1, sim);
    for (std::size_t i = 0; i < 2; ++i) {
      options.set("cipher", ciphers[i]);
      (*net)[i].on_boot([this, i, options](SimHost& machine) mutable {
        Stack& stack = stacks[i];
        stack.tap = &machine.add<Tap>(machine.ethernet());
        options.set("keys", files[i]->path());
        auto made = limits ? make_limited(machine, *stack.tap, options.text("keys"))
                           : auth_kind().make({machine.host(), "auth", {stack.tap}, options});
        ASSERT_TRUE(made) << made.error().message();
        stack.auth = made->get();
        machine.own(std::shared_ptr<Protocol>(std::move(*made)));
        stack.sink = &machine.add<SinkProtocol>();
        ASSERT_TRUE(stack.auth->open_enable(*stack.sink, SimHosts::anyone()));
      });
    }
  }
  void start(SimOptions sim = {}, Options options = {}) {
    const std::string keys = "* " + generate_key();
    start(keys, keys, sim, std::move(options));
  }

  SessionRef open(std::size_t from, std::size_t to) {
    const Shepherd inside((*net)[from].monitor());
    auto session = stacks[from].auth->open(*stacks[from].sink, net->to(to));
    EXPECT_TRUE(session) << session.error().message();
    return session ? *session : SessionRef();
  }
  Errc push(std::size_t from, const SessionRef& session, std::string_view text) {
    const Shepherd inside((*net)[from].monitor());
    return session->push(net->message(from, text));
  }
  /// Opens a session, pushes `text`, and releases the session.
  void send(std::size_t from, std::string_view text) {
    SessionRef session = open(from, 1 - from);
    EXPECT_EQ(push(from, session, text), Errc::ok);
    const Shepherd inside((*net)[from].monitor());
    session = {};
  }
  void run(Duration time = 100ms) { net->world.run_for(time); }
  control::Statistics statistics(std::size_t host) {
    const Shepherd inside((*net)[host].monitor());
    return test::asked<control::Statistics>(*stacks[host].auth);
  }
  std::vector<std::string>& received(std::size_t host) { return stacks[host].sink->received; }
  void inject(std::size_t host, const std::string& packet) {
    const Shepherd inside((*net)[host].monitor());
    stacks[host].tap->inject(packet);
  }
  static Type type_of(const std::string& packet) { return static_cast<Type>(packet[0]); }
  /// The packets of `type` that have arrived at `host`.
  std::vector<std::string> arrived(std::size_t host, Type type) {
    std::vector<std::string> packets;
    for (const std::string& packet : stacks[host].tap->arrived)
      if (type_of(packet) == type) packets.push_back(packet);
    return packets;
  }

  [[nodiscard]] const std::vector<std::string>& notices(std::size_t host) { return (*net)[host].notices(); }

  std::array<std::string, 2> ciphers = {"best", "best"};  ///< The option of each host. Set before start().
  std::optional<KeyLimits> limits;                        ///< Set before start(): lowers the limits of the ciphers.
  std::vector<std::unique_ptr<KeyFile>> files;
  Stack stacks[2];
  std::unique_ptr<SimHosts> net;

 private:
  Result<std::unique_ptr<Protocol>> make_limited(SimHost& machine, Protocol& below, std::string_view keys) const {
    AuthOptions options;
    options.keys = keys;
    options.settings.limits = *limits;
    auto ring = KeyRing::read(options.keys);
    if (!ring) return ring.error();
    auto made = std::make_unique<AuthProtocol>(machine.host(), "auth", below, std::move(options), std::move(*ring));
    if (auto enabled = made->enable_below(); !enabled) return enabled.error();
    return std::unique_ptr<Protocol>(std::move(made));
  }
};

/// Both hosts accept only the cipher that is the test's parameter.
class AuthBy : public Auth, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string_view("aes256-gcm") && !aes_gcm::available())
      GTEST_SKIP() << "this processor has no instructions for AES";
    ciphers = {GetParam(), GetParam()};
  }
};

using Texts = std::vector<std::string>;

}  // namespace lrpc::netrpc::auth
