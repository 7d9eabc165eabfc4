#include "file_service.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

namespace files {
namespace {

lrpc::Raise<Files::Refused> refuse(int error_number) {
  // openat2(2) returns EXDEV for what is not beneath the directory.
  const std::string what = error_number == EXDEV ? "this leads out of the exported directory"
                                                 : std::generic_category().message(error_number);
  return lrpc::raise(Files::Refused{.code = error_number, .what = lrpc::String<255>::cut(what)});
}

Files::Stat to_stat(const struct stat& status) {
  Files::Kind kind = Files::Kind::Other;
  if (S_ISREG(status.st_mode)) kind = Files::Kind::Regular;
  if (S_ISDIR(status.st_mode)) kind = Files::Kind::Directory;
  return {.size = static_cast<std::uint64_t>(status.st_size),
          .mtime = status.st_mtim.tv_sec,
          .permissions = status.st_mode & 0777U,
          .kind = kind};
}

}  // namespace

lrpc::Result<Files::OpenResults, Files::Refused> FileService::Open(lrpc::CallContext& call,
                                                                   const lrpc::String<4095>& path, Files::Mode mode,
                                                                   std::uint32_t permissions) {
  const bool write = mode == Files::Mode::Write;
  if (write && read_only_) return refuse(EROFS);
  // O_NONBLOCK, because opening a FIFO must not block the E-stack. No O_TRUNC: truncate only what is known to be a
  // regular file.
  const int flags = O_NONBLOCK | O_NOCTTY | (write ? O_WRONLY | O_CREAT : O_RDONLY);
  struct stat status {};
  // Check before opening, because opening a device may already have effects; and again afterwards, because names can
  // change.
  if (directory_.stat(path, status) == 0 && !S_ISREG(status.st_mode))
    return refuse(S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
  auto opened = directory_.open_beneath(path, flags, permissions);
  if (!opened.fd) return refuse(opened.error_number);
  if (fstat(opened.fd.get(), &status) != 0) return refuse(errno);
  if (!S_ISREG(status.st_mode)) return refuse(EINVAL);
  if (write && (ftruncate(opened.fd.get(), 0) != 0 || fstat(opened.fd.get(), &status) != 0)) return refuse(errno);
  auto file = std::make_shared<File>(File{std::move(opened.fd)});
  return Files::OpenResults{.file = call.grant<Files::File>(std::move(file)), .stat = to_stat(status)};
}

lrpc::Result<void, Files::Refused> FileService::Read(lrpc::CallContext& /*call*/, File& file, Files::Offset at,
                                                     Files::Count count, lrpc::Buffer& data) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = pread(file.fd.get(), data.data() + done, count - done, at + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  (void)data.resize(done);
  return {};
}

lrpc::Result<Files::Count, Files::Refused> FileService::Write(lrpc::CallContext& /*call*/, File& file, Files::Offset at,
                                                              std::span<const std::byte> data) {
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t put = pwrite(file.fd.get(), data.data() + done, data.size() - done, at + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return refuse(errno);
    done += static_cast<std::size_t>(put);
  }
  return static_cast<Files::Count>(done);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the file ends with it
void FileService::Close(lrpc::CallContext& /*call*/, std::shared_ptr<File> /*file*/) {}

lrpc::Result<Files::Stat, Files::Refused> FileService::StatPath(lrpc::CallContext& /*call*/,
                                                                const lrpc::String<4095>& path) {
  struct stat status {};
  if (const int error_number = directory_.stat(path, status); error_number != 0) return refuse(error_number);
  return to_stat(status);
}

lrpc::Result<void, Files::Refused> FileService::MakeDirectory(lrpc::CallContext& /*call*/,
                                                              const lrpc::String<4095>& path) {
  if (read_only_) return refuse(EROFS);
  const int error_number = directory_.make_directory(path);
  if (error_number == 0) return {};
  struct stat status {};
  if (error_number == EEXIST && directory_.stat(path, status) == 0 && S_ISDIR(status.st_mode)) return {};
  return refuse(error_number);
}

lrpc::Result<Files::Listing, Files::Refused> FileService::List(lrpc::CallContext& call,
                                                               const lrpc::String<4095>& path) {
  auto opened = directory_.open_beneath(path, O_RDONLY | O_DIRECTORY);
  if (!opened.fd) return refuse(opened.error_number);
  auto listing = std::make_shared<Listing>();
  listing->directory.reset(fdopendir(opened.fd.get()));
  if (listing->directory == nullptr) return refuse(errno);
  (void)opened.fd.release();  // the DIR owns it now
  return call.grant<Files::Listing>(std::move(listing));
}

lrpc::Result<Files::NextResults, Files::Refused> FileService::Next(lrpc::CallContext& /*call*/, Listing& listing) {
  Files::NextResults found{};
  std::lock_guard lock(listing.mutex);
  while (found.count < found.entries.size()) {
    errno = 0;
    const dirent* entry = readdir(listing.directory.get());
    if (entry == nullptr) {
      if (errno != 0) return refuse(errno);
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status {};
    // The entry itself, not a link's target: a link out of the directory is listed as Other and cannot be opened.
    if (fstatat(dirfd(listing.directory.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    found.entries[found.count++] = {.name = name, .stat = to_stat(status)};
  }
  return found;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the listing ends with it
void FileService::CloseListing(lrpc::CallContext& /*call*/, std::shared_ptr<Listing> /*listing*/) {}

}  // namespace files
