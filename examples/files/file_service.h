// The procedures of the Files interface over one confined directory.
#pragma once

#include <dirent.h>

#include <memory>
#include <mutex>

#include "confined_directory.h"
#include "files.server.h"
#include "lrpc/server.h"

namespace files {

/// Thread-safe: any number of clients may call at the same time. Each client's handle table holds its open files and
/// listings; rundown closes them when the client is gone.
class FileService {
 public:
  /// What the interface's handle types refer to.
  struct File {
    lrpc::UniqueFd fd;
  };
  struct Listing {
    struct Close {
      void operator()(DIR* directory) const noexcept { closedir(directory); }
    };
    std::mutex mutex;  ///< One client may call Next from several threads.
    std::unique_ptr<DIR, Close> directory;
  };

  FileService(ConfinedDirectory directory, bool read_only) : directory_(std::move(directory)), read_only_(read_only) {}

  lrpc::Result<Files::OpenResults, Files::Refused> Open(lrpc::CallContext& call, const lrpc::String<4095>& path,
                                                        Files::Mode mode, std::uint32_t permissions);
  lrpc::Result<void, Files::Refused> Read(lrpc::CallContext& call, File& file, Files::Offset at, Files::Count count,
                                          lrpc::Buffer& data);
  lrpc::Result<Files::Count, Files::Refused> Write(lrpc::CallContext& call, File& file, Files::Offset at,
                                                   std::span<const std::byte> data);
  void Close(lrpc::CallContext& call, std::shared_ptr<File> file);
  lrpc::Result<Files::Stat, Files::Refused> StatPath(lrpc::CallContext& call, const lrpc::String<4095>& path);
  lrpc::Result<void, Files::Refused> MakeDirectory(lrpc::CallContext& call, const lrpc::String<4095>& path);
  lrpc::Result<Files::Listing, Files::Refused> List(lrpc::CallContext& call, const lrpc::String<4095>& path);
  lrpc::Result<Files::NextResults, Files::Refused> Next(lrpc::CallContext& call, Listing& listing);
  void CloseListing(lrpc::CallContext& call, std::shared_ptr<Listing> listing);

 private:
  ConfinedDirectory directory_;
  const bool read_only_;
};

}  // namespace files
