#include "netrpc/devices/arp/address_watch.h"

namespace lrpc::netrpc {

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
