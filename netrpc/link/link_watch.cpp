#include "netrpc/link/link_watch.h"

#include <net/if.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace lrpc::netrpc {

namespace {

constexpr int kTries = 3;

struct LinkRequest {
  nlmsghdr header{};
  ifinfomsg body{};
  rtattr attribute{};
  std::array<char, IFNAMSIZ> name{};
};
struct AddressRequest {
  nlmsghdr header{};
  ifaddrmsg body{};
};

}  // namespace

Result<std::unique_ptr<LinkWatch>> LinkWatch::make(Host& host, UringEngine& engine, Interface link) {
  std::unique_ptr<LinkWatch> made(new LinkWatch(host, engine, std::move(link)));
  if (auto opened = made->requests_.open(); !opened) return opened.error();
  auto news = rtnetlink::open_news(RTMGRP_LINK | RTMGRP_IPV4_IFADDR);
  if (!news) return news.error();
  made->news_ = engine.add(host, news.value(), *made);
  made->watching_ = true;
  made->ask();  // what has changed between the look that found it and now is not in the news
  return made;
}

LinkWatch::~LinkWatch() {
  host_.events().cancel(again_);
  if (watching_) engine_.remove(news_);
}

void LinkWatch::look() noexcept {
  if (host_.now() < may_look_) return;
  may_look_ = host_.now() + kPause;
  ask();
}

/// By its index; if no link has it any more, by its name.
void LinkWatch::ask() noexcept {
  const auto visit = [this](std::uint16_t type, std::span<const std::byte> payload) {
    if (const auto link = rtnetlink::decode_link(type, payload)) heard(*link);
  };
  if (link().index != 0) {
    LinkRequest by_index;
    by_index.header.nlmsg_len = offsetof(LinkRequest, attribute);
    by_index.header.nlmsg_type = RTM_GETLINK;
    by_index.header.nlmsg_flags = NLM_F_REQUEST;
    by_index.body.ifi_index = link().index;
    if (requests_.ask(by_index, visit) == ENODEV) {
      rtnetlink::Link removed;
      removed.removed = true;
      removed.index = link().index;
      heard(removed);
    }
  }
  if (link().index == 0) {
    LinkRequest by_name;
    by_name.header.nlmsg_len = sizeof by_name;
    by_name.header.nlmsg_type = RTM_GETLINK;
    by_name.header.nlmsg_flags = NLM_F_REQUEST;
    by_name.attribute = {static_cast<unsigned short>(RTA_LENGTH(IFNAMSIZ)), IFLA_IFNAME};
    link().name.copy(by_name.name.data(), by_name.name.size() - 1);
    (void)requests_.ask(by_name, visit);
  }
  ask_for_address();
}

/// It may have moved to another link of this machine (a bridge, for example).
void LinkWatch::ask_for_address() noexcept {
  if (!state_.own().known()) return;
  AddressRequest all;
  all.header.nlmsg_len = sizeof all;
  all.header.nlmsg_type = RTM_GETADDR;
  all.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  all.body.ifa_family = AF_INET;
  bool there = false;
  const auto visit = [&](std::uint16_t type, std::span<const std::byte> payload) {
    const auto address = rtnetlink::decode_address(type, payload);
    if (address && !address->removed && address->host == state_.own()) there = true;
  };
  int error = EINTR;  // of an answer that the kernel's list changed under
  for (int i = 0; i < kTries && error == EINTR && !there; ++i) error = requests_.ask(all, visit);
  if (error == 0 || there) changed(state_.found_own_address(there), link().name);
}

bool LinkWatch::is_of_this_machine(const EthernetAddress& ethernet) noexcept {
  LinkRequest all;
  all.header.nlmsg_len = offsetof(LinkRequest, attribute);
  all.header.nlmsg_type = RTM_GETLINK;
  all.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  bool found = false;
  const int error = requests_.ask(all, [&](std::uint16_t type, std::span<const std::byte> payload) {
    const auto link = rtnetlink::decode_link(type, payload);
    if (link && !link->removed && link->ethernet == ethernet) found = true;
  });
  return found || error != 0;
}

void LinkWatch::heard(const rtnetlink::Link& news) noexcept {
  const std::string before = link().name;
  changed(state_.heard(news), before);
}

void LinkWatch::changed(const LinkChange& change, const std::string& name_before) noexcept {
  if (!change.any()) return;
  if (user_ != nullptr) user_->link_changed(change);
  host_.notice([&] { return describe(change, name_before, state_); });
}

void LinkWatch::arrived(Message message, std::span<const std::byte> from) noexcept {
  if (!rtnetlink::from_kernel(from) || !message.flatten() || host_.now() < believes_from_) return;
  bool own_address = false;
  rtnetlink::messages(message.bytes(), [&](const nlmsghdr& header, std::span<const std::byte> payload) {
    if (const auto link = rtnetlink::decode_link(header.nlmsg_type, payload)) heard(*link);
    const auto address = rtnetlink::decode_address(header.nlmsg_type, payload);
    if (address && address->host == state_.own()) own_address = true;
  });
  if (own_address) ask_for_address();
}

/// News has been lost, the newest. What still lies in the socket is older than the kernel's answer: it is not believed, and
/// the kernel is asked again afterwards.
void LinkWatch::receive_failed(int /*error*/) noexcept {
  believes_from_ = host_.now() + kOldNews;
  look();
  try {
    host_.events().schedule(again_, kOldNews);
  } catch (const std::bad_alloc&) {  // the next look finds out
  }
}

}  // namespace lrpc::netrpc
