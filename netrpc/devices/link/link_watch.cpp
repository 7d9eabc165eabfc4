#include "netrpc/devices/link/link_watch.h"

#include <net/if.h>

#include <cerrno>

#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

namespace {

constexpr int kTries = 3;

struct RequestByName : rtnetlink::Request<ifinfomsg> {
  rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(IFNAMSIZ)), IFLA_IFNAME};
  std::array<char, IFNAMSIZ> name{};
};

}  // namespace

Result<std::unique_ptr<LinkWatch>> LinkWatch::make(Host& host, UringEngine& engine, Asker& asker, Interface link) {
  std::unique_ptr<LinkWatch> made(new LinkWatch(host, engine, asker, std::move(link)));
  auto news = rtnetlink::open_news(RTMGRP_LINK | RTMGRP_IPV4_IFADDR);
  if (!news) return news.error();
  made->news_ = engine.add(host, news.value(), *made);
  // Asks once: changes between the search that found the link and now are not in the news.
  rtnetlink::Requests kernel;
  if (auto opened = kernel.open(); !opened) return opened.error();
  made->found(find(kernel, made->link(), made->state_.own()));
  return made;
}

void LinkWatch::look() noexcept {
  if (host_.now() < may_look_) return;
  may_look_ = host_.now() + kPause;
  ask();
}

/// One question at a time. If ask() is called while one is under way, the reason may be newer than the answer: asks
/// again after the answer. If news arrives meanwhile, it may be newer than the answer: ignores the answer and asks
/// again. An answer for which there was no memory never comes: waits for one no longer than kLongestQuestion.
void LinkWatch::ask() noexcept {
  if (asking_ && host_.now() < asking_until_) {
    ask_again_ = true;
    return;
  }
  ask_again_ = false;
  asking_until_ = host_.now() + kLongestQuestion;
  attempt([&] {  // without memory, the next look() asks
    asking_ = asker_.ask([this, link = link(), own = state_.own(), news = news_heard_](rtnetlink::Requests& kernel) {
      return [this, news, answer = find(kernel, link, own)] {
        asking_ = false;
        const bool newest = news == news_heard_;
        if (newest) found(answer);
        if (!newest || ask_again_) ask();
      };
    });
  });
}

/// The link by its index; if none has that any more, by its name.
LinkWatch::Found LinkWatch::find(rtnetlink::Requests& kernel, const Interface& link, HostAddress own) {
  Found found;
  const auto visit = [&found](std::uint16_t type, std::span<const std::byte> payload) {
    if (const auto one = rtnetlink::decode_link(type, payload)) found.link = *one;
  };
  int index = link.index;
  if (index != 0) {
    rtnetlink::Request<ifinfomsg> by_index;
    by_index.header.nlmsg_type = RTM_GETLINK;
    by_index.body.ifi_index = index;
    if (kernel.ask(by_index, visit) == ENODEV) {
      found.removed = index;
      index = 0;
    }
  }
  if (index == 0) {
    RequestByName by_name;
    by_name.header.nlmsg_type = RTM_GETLINK;
    link.name.copy(by_name.name.data(), by_name.name.size() - 1);
    (void)kernel.ask(by_name, visit);
  }
  found.own_is_there = find_address(kernel, own);
  return found;
}

/// The address may have moved to another link of this machine (a bridge, for example): asks for all.
std::optional<bool> LinkWatch::find_address(rtnetlink::Requests& kernel, HostAddress own) {
  if (!own.known()) return std::nullopt;
  rtnetlink::Request<ifaddrmsg> all;
  all.header.nlmsg_type = RTM_GETADDR;
  all.header.nlmsg_flags = NLM_F_DUMP;
  all.body.ifa_family = AF_INET;
  bool there = false;
  const auto visit = [&](std::uint16_t type, std::span<const std::byte> payload) {
    const auto address = rtnetlink::decode_address(type, payload);
    if (address && !address->removed && address->host == own) there = true;
  };
  int error = EINTR;  // the kernel's list changed during the answer
  for (int i = 0; i < kTries && error == EINTR && !there; ++i) error = kernel.ask(all, visit);
  return error == 0 || there ? std::optional(there) : std::nullopt;
}

void LinkWatch::found(const Found& found) noexcept {
  if (found.removed != 0) heard({.removed = true, .index = found.removed, .ethernet = {}});
  if (found.link) heard(*found.link);
  if (found.own_is_there) changed(state_.found_own_address(*found.own_is_there), link().name);
}

void LinkWatch::ask_whether_ours(const EthernetAddress& ethernet, std::function<void(bool ours)> answer) {
  (void)asker_.ask([ethernet, answer = std::move(answer)](rtnetlink::Requests& kernel) {
    rtnetlink::Request<ifinfomsg> all;
    all.header.nlmsg_type = RTM_GETLINK;
    all.header.nlmsg_flags = NLM_F_DUMP;
    bool found = false;
    const int error = kernel.ask(all, [&](std::uint16_t type, std::span<const std::byte> payload) {
      const auto link = rtnetlink::decode_link(type, payload);
      if (link && !link->removed && link->ethernet == ethernet) found = true;
    });
    return [answer, ours = found || error != 0] { answer(ours); };
  });
}

void LinkWatch::changed(const LinkChange& change, const std::string& name_before) noexcept {
  if (!change.any()) return;
  if (user_ != nullptr) user_->link_changed(change);
  host_.notice([&] { return describe(change, name_before, state_); });
}

void LinkWatch::arrived(Message message, std::span<const std::byte> from) noexcept {
  if (!rtnetlink::from_kernel(from) || !message.flatten() || host_.now() < believes_from_) return;
  bool own_address = false;
  ++news_heard_;
  rtnetlink::messages(message.bytes(), [&](const nlmsghdr& header, std::span<const std::byte> payload) {
    if (const auto link = rtnetlink::decode_link(header.nlmsg_type, payload)) heard(*link);
    const auto address = rtnetlink::decode_address(header.nlmsg_type, payload);
    if (address && address->host == state_.own()) own_address = true;
  });
  if (own_address) ask();
}

/// The newest news has been lost. What still lies in the socket is older than the kernel's answer to look(): it is
/// ignored for kOldNews, and then the kernel is asked again.
void LinkWatch::receive_failed(int /*error*/) noexcept {
  believes_from_ = host_.now() + rtnetlink::kOldNews;
  look();
  attempt([&] { host_.events().schedule(again_, rtnetlink::kOldNews); });  // without memory, the next look() asks
}

}  // namespace lrpc::netrpc
