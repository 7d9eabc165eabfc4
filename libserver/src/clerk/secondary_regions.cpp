#include "secondary_regions.h"

#include <algorithm>
#include <new>
#include <utility>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/system/handover.h"

namespace lrpc::server {

// ---- One region ----

SecondaryRegion::SecondaryRegion(std::shared_ptr<ServedBinding> binding, const shim::GrowthRequest& granted,
                                 shim::Region region, shim::PeerSocket line, Share share, Unmapper::Place unmapping,
                                 Share descriptor)
    : share_(std::move(share)),
      unmapping_(std::move(unmapping)),
      descriptor_(std::move(descriptor)),
      binding_(std::move(binding)),
      place_(granted.place),
      region_(std::move(region)),
      line_(std::move(line)),
      astacks_(granted.count) {
  for (std::uint32_t i = 0; i < astacks_.size(); ++i) {
    shim::AStack placed = region_.astack(i);
    placed.astack_class = granted.astack_class;
    binding_->equip(astacks_[i], placed);
  }
  binding_->grown_astacks.fetch_add(astacks_.size());
}

SecondaryRegion::~SecondaryRegion() {
  shim::take_over(shim::handover_place(binding_->id(), nullptr));  // from those who had it before
  if (!settled_) binding_->grown_astacks.fetch_sub(astacks_.size());
  unmapping_.unmap(std::move(region_));
}

bool SecondaryRegion::settle() noexcept {
  if (!none_executes(astacks_)) return false;
  settled_ = true;
  binding_->grown_astacks.fetch_sub(astacks_.size());
  share_.give();
  unmapping_.settle();
  return true;
}

// ---- The clerk ----

void SecondaryRegions::grow(const std::shared_ptr<ServedBinding>& binding, shim::PeerSocket line) {
  if (!line) return;
  Errc granted = Errc::limit_reached;
  try {
    granted = try_grow(binding, line).code();
  } catch (const std::bad_alloc&) {  // counts as a limit
  }
  if (granted == Errc::ok) return;
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (line) shim::refuse_growth(line.get(), granted);
}

Status SecondaryRegions::try_grow(const std::shared_ptr<ServedBinding>& binding, shim::PeerSocket& line) {
  auto request = shim::take_growth_request(line.get(), binding->stranger());
  if (!request) return request.error();
  const auto classes = binding->interface().pdl->classes;
  if (request->astack_class >= classes.size() || binding->gate() == shim::Gate::trap) return Errc::invalid_argument;

  // G4: regions that the client gave back before it asked must not count, even if their lines have not reported it yet.
  for (const auto& region : binding->secondary()) {
    if (shim::readable(region->line())) on_line(*binding, region);
  }

  const uid_t user = binding->user();
  accounts_->settle_ended(user);

  // As many as the limits leave.
  const Holding left = accounts_->left(user);
  const std::uint64_t of_binding = options_.max_grown_astacks_per_binding;
  const std::uint64_t most = std::min({std::uint64_t{request->count}, left.grown_astacks,
                                       of_binding - std::min(of_binding, binding->grown_astacks.load())});
  const AStackClass grown =
      shim::class_that_fits(classes[request->astack_class], static_cast<std::uint16_t>(most), left.grown_bytes);
  if (grown.count == 0 || left.descriptors == 0) return Errc::limit_reached;
  request->count = grown.count;

  auto layout = shim::RegionLayout::of({&grown, 1});
  if (!layout) return layout.error();
  auto fd = shim::create_region(*layout);
  if (!fd) return fd.error();
  const std::uint64_t bytes = layout->size();
  auto mapped = shim::Region::map(fd->get(), *std::move(layout));
  if (!mapped) return mapped.error();

  auto share = accounts_->take(user, {.grown_astacks = grown.count});
  auto unmapping = unmapper_->place_for(bytes, accounts_->take(user, {.grown_bytes = bytes}));
  const int answer_on = line.get();
  auto region =
      std::make_shared<SecondaryRegion>(binding, *request, *std::move(mapped), std::move(line), std::move(share),
                                        std::move(unmapping), accounts_->take(user, {.descriptors = 1}));
  // Watched before it is added: the end of the binding, on whatever thread, must find the region complete.
  const auto on_end = [this, hold = std::weak_ptr(region)](shim::Watcher::Event) {
    if (const auto ended = hold.lock()) on_line(*SecondaryRegion::as_binding(ended), ended);
  };
  auto watched = watcher_.watch(answer_on, on_end, user);
  if (!watched) return watched.error();
  region->line_watch = *watched;
  bool added = false;
  try {
    added = binding->add(region);
  } catch (const std::bad_alloc&) {
  }
  if (!added) {  // G5: the binding has been revoked, or has something in that place
    watcher_.unwatch(region->line_watch);
    return Errc::invalid_argument;
  }
  const Status answered = shim::grant_growth(answer_on, grown.count, fd->get());  // G6
  if (answered) return {};
  // Too many descriptors are in flight, or there is no memory. A refusal needs neither: it arrives, or the hang-up
  // does.
  shim::refuse_growth(answer_on, Errc::limit_reached);
  on_line(*binding, region);
  if (answered.code() == Errc::peer_gone) return {};  // The client has given up: nothing was refused.
  return Errc::limit_reached;
}

/// G9: the client has hung up, or sent a message that no protocol allows: either way the line has ended.
void SecondaryRegions::on_line(ServedBinding& binding, const std::shared_ptr<SecondaryRegion>& region) {
  watcher_.unwatch(region->line_watch);
  const bool ours = binding.take_out(*region);  // otherwise the binding's end settles it
  region->hang_up();
  region->close();
  estacks_.let_go(region->astacks());
  if (ours) accounts_->settle(region);
}

// G10
void SecondaryRegions::end(ServedBinding& binding) {
  for (const auto& region : binding.take_secondary()) {
    watcher_.unwatch(region->line_watch);
    region->hang_up();
    accounts_->settle(region);
  }
}

}  // namespace lrpc::server
