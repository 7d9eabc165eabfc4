#include "netrpc/devices/link/link_state.h"

#include <fmt/format.h>
#include <net/if.h>

#include <utility>

namespace lrpc::netrpc {

LinkChange LinkState::heard(const rtnetlink::Link& news) noexcept {
  LinkChange change;
  const std::string_view name = news.name_view();
  if (link_.index == 0) {
    if (news.removed || name != link_.name) return change;
    link_.index = news.index;
    change.back = true;
    up_ = false;  // until set below
  } else if (news.index != link_.index) {
    return change;
  } else if (news.removed) {
    link_.index = 0;
    change.gone = true;
    return change;
  }
  change.renamed = !name.empty() && name != link_.name;
  if (change.renamed) link_.name = name;  // at most 15 characters: no allocation
  change.mtu = news.mtu != 0 && news.mtu != link_.mtu;
  if (change.mtu) link_.mtu = news.mtu;
  change.ethernet = news.ethernet.known() && news.ethernet != link_.ethernet;
  if (change.ethernet) link_.ethernet = news.ethernet;
  const bool up = (news.flags & IFF_UP) != 0 && (news.flags & IFF_RUNNING) != 0;
  change.came_up = up && !up_;
  change.went_down = !up && up_;
  up_ = up;
  return change;
}

LinkChange LinkState::found_own_address(bool there) noexcept {
  const bool before = std::exchange(has_own_, there);
  return {.address_gone = before && !there, .address_back = there && !before};
}

std::string describe(const LinkChange& change, const std::string& name, const LinkState& now) {
  const Interface& link = now.link();
  std::string text = fmt::format("link {}", name);
  if (change.gone) return text + " is gone: what goes over it is lost until there is a link of this name";
  if (change.address_gone)
    return fmt::format(
        "{} is no address of this machine any more: other hosts cannot reach it until the address is given back "
        "(with another address, start again)",
        to_string(now.own()));
  if (change.address_back) return fmt::format("{} is an address of this machine again", to_string(now.own()));
  const char* separator = "";
  const auto say = [&](const std::string& what) {
    text += separator + (" " + what);
    separator = ",";
  };
  if (change.back) say("is there again");
  if (change.renamed) say("is called " + link.name);
  if (change.went_down) say("is down: what goes over it is lost");
  if (change.came_up) say("is up");
  if (change.mtu) say(fmt::format("carries {} bytes a frame", link.mtu));
  if (change.ethernet) say("has the Ethernet address " + to_string(link.ethernet));
  return text;
}

}  // namespace lrpc::netrpc
