#include "netrpc/devices/arp/address_watch.h"

#include <utility>

namespace lrpc::netrpc {

AddressWatch::AddressWatch(std::unique_ptr<Asker> asker, std::unique_ptr<LinkWatch> watch,
                           std::unique_ptr<ArpSender> arp)
    : asker_(std::move(asker)), watch_(std::move(watch)), arp_(std::move(arp)) {
  watch_->tell(*this);
}

std::unique_ptr<AddressWatch> AddressWatch::make(Host& host, UringEngine& engine) {
  auto link = find_interface_of(host.address());
  if (!link) return nullptr;
  auto asker = Asker::make(host, engine);
  if (!asker) return nullptr;
  auto watch = LinkWatch::make(host, engine, **asker, *std::move(link));
  if (!watch) return nullptr;
  auto arp = ArpSender::make(host, engine, **watch);
  if (!arp || *arp == nullptr) return nullptr;
  return std::unique_ptr<AddressWatch>(new AddressWatch(*std::move(asker), *std::move(watch), *std::move(arp)));
}

}  // namespace lrpc::netrpc
