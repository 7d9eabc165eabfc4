// Hosts with FRAGMENT over tapped Ethernets, and forged packets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "netrpc/protocols/fragment/fragment.h"
#include "netrpc/protocols/fragment/header.h"
#include "netrpc/protocols/fragment/test/tap.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {

using namespace std::chrono_literals;
using fragment::Header;

/// `size` pseudorandom bytes, so that a misplaced fragment is noticed.
inline std::string text(std::size_t size, unsigned seed = 1) {
  std::minstd_rand random(seed);
  std::string made(size, '\0');
  for (char& c : made) c = static_cast<char>(random());
  return made;
}

struct FragmentHost {
  explicit FragmentHost(SimHost& on, const FragmentOptions& options = {})
      : machine(on), tap(on.add<Tap>(on.ethernet())) {
    auto made = make_fragment(machine.host(), "fragment", tap, options);
    fragment = made->get();
    machine.own(std::shared_ptr<Protocol>(std::move(*made)));
    sink = &machine.add<SinkProtocol>();
  }
  control::Statistics statistics() { return test::asked<control::Statistics>(*fragment); }
  void enable() {
    const Shepherd inside(machine.monitor());
    ASSERT_TRUE(fragment->open_enable(*sink, SimHosts::anyone()));
  }
  void drop_idle() {
    sink->sessions.clear();
    const Shepherd inside(machine.monitor());
    control::Request drop = control::DropIdle{};
    ASSERT_EQ(fragment->control(drop), Errc::ok);
  }

  SimHost& machine;
  Tap& tap;
  Protocol* fragment = nullptr;
  SinkProtocol* sink = nullptr;
};

class Fragment : public ::testing::Test {
 protected:
  SessionRef open(FragmentHost& from, std::size_t to, ProtocolNumber number = protocol_numbers::kFirstOfTests) {
    const Shepherd inside(from.machine.monitor());
    auto opened = from.fragment->open(*from.sink, net.to(to, number));
    EXPECT_TRUE(opened) << opened.error().message();
    return *std::move(opened);
  }
  Errc push(FragmentHost& from, const SessionRef& session, const std::string& what) {
    const Shepherd inside(from.machine.monitor());
    return session->push(net.message(from.machine.index(), what));
  }
  /// Sends a forged packet from host `from` to host `to`.
  void inject(FragmentHost& from, std::size_t to, const Header& header, const std::string& data) {
    const Shepherd inside(from.machine.monitor());
    auto lower = from.machine.ethernet().open(from.tap, net.to(to, protocol_numbers::kFragment));
    ASSERT_TRUE(lower);
    Message message = net.message(from.machine.index(), data);
    header.encode(message.push(Header::kSize));
    ASSERT_EQ((*lower)->push(std::move(message)), Errc::ok);
  }
  Header header(std::size_t from, std::size_t to) {
    Header made;
    made.clnt_host = net.address(from);
    made.svr_host = net.address(to);
    made.protocol_num = protocol_numbers::kFirstOfTests;
    made.sequence_num = 77;
    return made;
  }
  Header data(std::uint16_t num_frag, std::uint16_t mask, std::size_t len) {
    Header made = header(0, 1);
    made.num_frag = num_frag;
    made.frag_mask = mask;
    made.len = static_cast<std::uint16_t>(len);
    return made;
  }

  SimHosts net{6};
};

inline constexpr std::size_t kCut = 1500 - Header::kSize;

}  // namespace lrpc::netrpc
