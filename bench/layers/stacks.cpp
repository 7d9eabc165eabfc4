#include "stacks.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace lrpc::bench {

namespace {

using netrpc::Service;

constexpr std::array kStacks = {
    Stack{"ETH", "top = ETH;", Service::datagram},
    Stack{"IP", "top = IP;", Service::datagram},
    Stack{"UDP", "top = UDP;", Service::datagram},
    Stack{"USER-UDP",
          "top = UDP;",
          Service::datagram,
          {},
          0,
          "user = USER(name = bench, number = 240, largest = 65536) over top;"},
    Stack{"TCP", "top = TCP(port = 7008);", Service::datagram, {}, 7008},
    Stack{"VIP", "eth = ETH; ip = IP; top = VIP over eth, ip;", Service::datagram, {1.12, {}, {}}},
    Stack{"FRAGMENT-VIP",
          "eth = ETH; ip = IP; vip = VIP over eth, ip; top = FRAGMENT over vip;",
          Service::datagram,
          {1.33, 865, {}}},
    Stack{"CHANNEL-FRAGMENT-VIP",
          "eth = ETH; ip = IP; vip = VIP over eth, ip; fragment = FRAGMENT over vip; top = CHANNEL over fragment;",
          Service::transaction,
          {1.82, {}, {}}},
    Stack{"SELECT-CHANNEL-FRAGMENT-VIP",
          "eth = ETH; ip = IP; vip = VIP over eth, ip; fragment = FRAGMENT over vip; channel = CHANNEL over fragment;"
          "top = SELECT over channel;",
          Service::transaction,
          {1.93, 839, 1.03}},
    Stack{"SELECT-CHANNEL-VIPsize",
          "eth = ETH; ip = IP; vipaddr = VIPADDR over eth, ip; fragment = FRAGMENT over vipaddr;"
          "vipsize = VIPSIZE over vipaddr, fragment; channel = CHANNEL over vipsize; top = SELECT over channel;",
          Service::transaction,
          {1.78, {}, {}}},
    Stack{"M_RPC-ETH", "eth = ETH; top = M_RPC over eth;", Service::transaction, {1.73, 863, 1.04}},
    Stack{"M_RPC-IP", "ip = IP; top = M_RPC over ip;", Service::transaction, {2.10, 836, 1.05}},
    Stack{"M_RPC-VIP",
          "eth = ETH; ip = IP; vip = VIP over eth, ip; top = M_RPC over vip;",
          Service::transaction,
          {1.79, 860, 1.04}},
    Stack{"PAIRED-UDP", "udp = UDP; top = PAIRED over udp;"},
    Stack{"SELECT-CHANNEL-UDP", "udp = UDP; channel = CHANNEL over udp; top = SELECT over channel;"},
    // Sun RPC, one more layer at a time, and mixed with the layers of Sprite RPC (section 5).
    Stack{"REQUEST_REPLY-UDP", "udp = UDP; top = REQUEST_REPLY over udp;"},
    Stack{"SUN_CALL-REQUEST_REPLY-UDP", "udp = UDP; pairs = REQUEST_REPLY over udp; top = SUN_CALL over pairs;"},
    Stack{"AUTH_NONE-SUN_CALL-REQUEST_REPLY-UDP",
          "udp = UDP; pairs = REQUEST_REPLY over udp; call = SUN_CALL over pairs; top = AUTH_NONE over call;"},
    Stack{"SUN_SELECT-AUTH_NONE-SUN_CALL-REQUEST_REPLY-UDP",
          "udp = UDP; pairs = REQUEST_REPLY over udp; call = SUN_CALL over pairs; auth = AUTH_NONE over call;"
          "top = SUN_SELECT(program = 0x20000001) over auth;"},
    Stack{"SUN_SELECT-AUTH_NONE-SUN_CALL-REQUEST_REPLY-TCP",
          "tcp = TCP(port = 7009); pairs = REQUEST_REPLY over tcp; call = SUN_CALL over pairs;"
          "auth = AUTH_NONE over call; top = SUN_SELECT(program = 0x20000001) over auth;",
          Service::transaction,
          {},
          7009},
    Stack{"SUN_SELECT-AUTH_SYS-SUN_CALL-REQUEST_REPLY-UDP",
          "udp = UDP; pairs = REQUEST_REPLY over udp; call = SUN_CALL over pairs; auth = AUTH_SYS over call;"
          "top = SUN_SELECT(program = 0x20000001) over auth;"},
    Stack{"SUN_SELECT-SUN_CALL-REQUEST_REPLY-UDP",
          "udp = UDP; pairs = REQUEST_REPLY over udp; call = SUN_CALL over pairs;"
          "top = SUN_SELECT(program = 0x20000001) over call;"},
    Stack{"SUN_SELECT-SUN_CALL-REQUEST_REPLY-FRAGMENT-UDP",
          "udp = UDP; fragment = FRAGMENT over udp; pairs = REQUEST_REPLY over fragment; call = SUN_CALL over pairs;"
          "top = SUN_SELECT(program = 0x20000001) over call;"},
    Stack{"SUN_SELECT-SUN_CALL-CHANNEL-FRAGMENT-UDP",
          "udp = UDP; fragment = FRAGMENT over udp; channel = CHANNEL over fragment; call = SUN_CALL over channel;"
          "top = SUN_SELECT(program = 0x20000001) over call;"},
};

}  // namespace

std::span<const Stack> all_stacks() { return kStacks; }

const Stack& stack(std::string_view name) {
  const auto found = std::ranges::find(kStacks, name, &Stack::name);
  if (found == kStacks.end()) std::abort();
  return *found;
}

}  // namespace lrpc::bench
